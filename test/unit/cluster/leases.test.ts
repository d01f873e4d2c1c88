/** Owns how a daemon starts that finds another's lease: it waits for its end, and not for the database. */
import { expect, test } from "vitest";
import { DirectoryAway } from "../../../daemon/cluster/away.ts";
import type { Connections, Run } from "../../../daemon/cluster/connections.ts";
import { Leases, type Load } from "../../../daemon/cluster/leases.ts";
import { ConfigError } from "../../../daemon/core/config.ts";
import { makeLog } from "../../../daemon/core/log.ts";

/** Leases whose database answers each beat so, and is away after the last. */
function answering(...answers: { is_member: boolean; others_until: string | null }[]) {
  const transaction = async (work: (run: Run) => Promise<unknown>) => {
    const answer = answers.shift();
    if (!answer) throw new DirectoryAway("unreachable", "as a test wants it");
    return await work(async () => ({ command: "SELECT", rows: [{ ...answer, load: {}, database_ms: Date.now() }] }));
  };
  return new Leases({
    connections: { transaction } as unknown as Connections,
    member: { cluster_id: "c", host_id: "one", incarnation: "i" },
    holder: { run: "r", place: "p" },
    version: "1",
    log: makeLog("error", () => {}),
  });
}

const OTHERS = { is_member: false, others_until: "12:00" };
const load = () => ({}) as Load;

test("a daemon goes on once the lease of the one before it is over, or the database is away", async () => {
  for (const leases of [answering(OTHERS, OTHERS, { is_member: true, others_until: null }), answering(OTHERS)]) {
    await leases.start(load);
    await leases.stop();
  }
});

test("one whose lease is renewed by another is refused", async () => {
  await expect(answering(OTHERS, { ...OTHERS, others_until: "12:03" }).start(load)).rejects.toThrow(ConfigError);
});
