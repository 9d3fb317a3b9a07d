// perfetto.mjs FOLDER TRACE...   has Perfetto's trace processor, whose WebAssembly and glue lie in FOLDER, open each TRACE and answer the questions in SQL
// that its standard input holds as a JSON array. What it writes is an array of what it has of each trace: { error } or { answers: one array of rows for
// each question }. The glue is made for a browser's worker; here it finds what it needs of one.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import vm from "node:vm";

const [folder, ...traces] = process.argv.slice(2);
globalThis.self = globalThis;
globalThis.WorkerGlobalScope = function () {};
globalThis.location = { href: pathToFileURL(folder).href + "/" };
globalThis.wasm = new Uint8Array(readFileSync(join(folder, "trace_processor.wasm")));
const ready = new Promise((resolve) => { globalThis.whenReady = resolve; });

// Four lines of the glue are for the browser: 64-bit memory, where to download from, who sends messages, and when it can take some.
let glue = readFileSync(join(folder, "engine_bundle.node.js"), "utf8");
for (const [theirs, ours] of [
  ["this.useMemory64 = hasMemory64Support();", "this.useMemory64 = false;"],
  ["locateFile: (s) => s,", "locateFile: (s) => s, wasmBinary: globalThis.wasm,"],
  ["const wasmBridge = new wasm_bridge_1.WasmBridge();", "const wasmBridge = globalThis.bridge = new wasm_bridge_1.WasmBridge();"],
  ["[fn, REQ_BUF_SIZE]));", "[fn, REQ_BUF_SIZE])); globalThis.whenReady();"],
]) {
  const parts = glue.split(theirs);
  if (parts.length !== 2) throw new Error(`the glue has ${parts.length - 1} times: ${theirs}`);
  glue = parts.join(ours);
}
console.warn = () => {}; // of the engine: system calls that a browser lacks
console.log = () => {};
vm.runInThisContext(glue, { filename: "engine_bundle.node.js" });
await ready;

const { EngineBase } = await import(pathToFileURL(join(folder, "engine.mjs")));
const channel = new MessageChannel();
class Engine extends EngineBase {
  mode = "WASM";
  id = "test";
  rpcSendRequestBytes(bytes) { channel.port2.postMessage(bytes); }
}
const engine = new Engine();
globalThis.bridge.initialize(channel.port1);
channel.port2.onmessage = (m) => engine.onRpcResponseBytes(m.data);

async function rowsOf(question) {
  const result = await engine.query(question);
  if (result.error()) throw new Error(result.error());
  const rows = [];
  for (const it = result.iter({}); it.valid(); it.next()) {
    rows.push(Object.fromEntries(result.columns().map((c) => [c, typeof it.get(c) === "bigint" ? Number(it.get(c)) : it.get(c)])));
  }
  return rows;
}

const questions = JSON.parse(readFileSync(0, "utf8"));
const all = [];
for (const trace of traces) {
  await engine.resetTraceProcessor({});
  try {
    await engine.parse(new Uint8Array(readFileSync(trace)));
    await engine.notifyEof();
  } catch (e) { // what the engine says of a file that it cannot open
    all.push({ error: String(e) });
    continue;
  }
  const answers = [];
  for (const q of questions) answers.push(await rowsOf(q));
  all.push({ answers });
}
process.stdout.write(JSON.stringify(all), () => process.exit(0));
