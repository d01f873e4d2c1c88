/** Runs two steps and a commit, and prints each one that is done: output stops at an active fault point. */
import { writeSync } from "node:fs";
import { runSteps, type Step } from "../../../daemon/core/concurrency/undo-steps.ts";
import { openConnection } from "../../../daemon/db/client.ts";
import { makeDatabase } from "../../../daemon/db/transact.ts";

const say = (line: string) => writeSync(1, `${line}\n`);
const step = (name: string): Step<null> => ({ name, run: async () => void say(name), undo: async () => {} });

await runSteps([step("disk"), step("machine")], null, () => {});
const database = makeDatabase(openConnection(":memory:"));
for (const count of [1, 2, 3]) {
  await database.commit(() => null);
  say(`commit ${count}`);
}
say("end");
