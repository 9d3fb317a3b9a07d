package crew

import "encoding/json"

// wirePlan is a Plan as it travels. What the system takes are bytes, which need not be text, and a string of JSON is text: so they are in base64.
type wirePlan struct {
	plainPlan
	Argv [][]byte         `json:"argv"`
	Wrap map[int][][]byte `json:"wrap"`
	Dir  []byte           `json:"dir"`
	Env  [][]byte         `json:"env"`
	Set  [][]byte         `json:"set"`
}

// plainPlan is the rest of it.
type plainPlan Plan

// MarshalJSON implements json.Marshaler.
func (p Plan) MarshalJSON() ([]byte, error) {
	w := wirePlan{
		plainPlan: plainPlan(p), Argv: each[[]byte](p.Argv), Dir: []byte(p.Dir), Env: each[[]byte](p.Env), Set: each[[]byte](p.Set),
		Wrap: make(map[int][][]byte, len(p.Wrap)),
	}
	for r, words := range p.Wrap {
		w.Wrap[r] = each[[]byte](words)
	}
	return json.Marshal(w)
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *Plan) UnmarshalJSON(b []byte) error {
	var w wirePlan
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	*p = Plan(w.plainPlan)
	p.Argv, p.Dir, p.Env, p.Set = each[string](w.Argv), string(w.Dir), each[string](w.Env), each[string](w.Set)
	p.Wrap = make(map[int][]string, len(w.Wrap))
	for r, words := range w.Wrap {
		p.Wrap[r] = each[string](words)
	}
	return nil
}

// each converts all of them.
func each[To, From string | []byte](all []From) []To {
	out := make([]To, len(all))
	for i, one := range all {
		out[i] = To(one)
	}
	return out
}
