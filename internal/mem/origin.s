// This file lets the compiler accept findObject, whose body the runtime has.
