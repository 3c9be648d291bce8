"""Print the digests of fits as JSON; --write makes them the golden ones (`make golden`)."""
import argparse, json, sys
from tests.golden.fits import GOLDEN, private_fits, bits, fitted
from tests.golden.digest import digest
import numpy as np
import traceback
out={}
for name in private_fits():
    try:
        b=bits(name)
        model, rows = fitted(*private_fits()[name])
        p = model.predict_proba(rows) if hasattr(model,"predict_proba") else model.predict(rows)
        b["predict"]=digest(np.asarray(model.predict(rows)))
        b["proba"]=digest(np.asarray(p))
        b["entries"]=" ".join(float(e.scale).hex() for e in model.ledger_.entries)
    except Exception as e:
        traceback.print_exc(limit=3, file=sys.stderr)
        b={"error":repr(e)}
    out[name]=b
json.dump(out, open(sys.argv[1],"w"), indent=0, sort_keys=True)
