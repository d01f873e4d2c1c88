/** A process that closes the days of a database, and purges those before a moment; a test has it killed on the way. */
import { makeLog } from "../../../../../daemon/core/log.ts";
import { openConnection } from "../../../../../daemon/db/client.ts";
import { makeDatabase } from "../../../../../daemon/db/transact.ts";
import { closeDays, purgeDays } from "../../../../../daemon/domain/audit/days/close.ts";

const [file = "", before = ""] = process.argv.slice(2);
const database = makeDatabase(openConnection(file));
const deps = { database, log: makeLog("error"), file };
await closeDays(deps, new AbortController().signal);
await purgeDays(deps, before);
await database.close();
process.exit(0);
