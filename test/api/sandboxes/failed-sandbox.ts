/**
 * A daemon with a sandbox that failed because there is no QEMU, and left its row: a test sets the state that it needs, and all steps of a
 * call before its request to the guest are as with any other sandbox.
 */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { NO_GUESTS, TestDaemon } from "../../harness/daemon.ts";
import { untilState } from "../../harness/guests.ts";
import { DESCRIBED_MIN_MIB, describeTemplate } from "./described-template.ts";

/** The sandbox is this agent's, in the room r. `rows` is the daemon's database. */
export async function withFailedSandbox(
  agent_id: string,
  env: Record<string, string> = {},
): Promise<{ daemon: TestDaemon; rows: Database }> {
  const daemon = await TestDaemon.start({
    env: { ...NO_GUESTS, ...env },
  });
  describeTemplate(daemon);
  await daemon.room("r");
  const sandbox = { agent_id, guest_cid: 9100, memory_mib: DESCRIBED_MIN_MIB };
  await daemon.api("POST", "/v1/rooms/r/sandboxes/from-template", sandbox);
  await untilState(daemon, "r", agent_id, "failed");
  const rows = new Database(join(daemon.dataDir, "roomd.db"));
  rows.run("PRAGMA busy_timeout = 5000");
  return { daemon, rows };
}
