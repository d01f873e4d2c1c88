/**
 * Owns a daemon with a sandbox that failed, for want of a QEMU, and left its row: a test gives it the state that it needs, and all
 * that a call does before it asks the guest is as with any other.
 */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { NO_GUESTS, TestDaemon } from "../harness/daemon.ts";
import { untilState } from "../harness/guests.ts";
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
