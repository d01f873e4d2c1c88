/**
 * Benchmark of time to interactive, in the shape of the field's public one: with computesdk's provider, from the call that creates a
 * sandbox to the end of `node -v` in it; sequential, started at intervals, and all concurrently. A failed run counts with the whole limit.
 * Yardstick: the same with plain API calls, sequentially.
 */
import { roomd } from "../../sdk/typescript/src/computesdk.ts";
import { GUEST_CID_MIN } from "../../shared/ids.ts";
import type { TestDaemon } from "../harness/daemon.ts";
import { timed } from "./load/sampling.ts";
import type { Bench } from "./report.ts";

const USUAL_COUNT = 10;
const INTERVAL_MS = 1000;
/** As far as this host has memory: emulated guests share its cores besides. */
const BURST = 8;
const MEMORY_MIB = 256;
const LIMIT_MS = 10_000;
const COMMAND = "node -v";
const ROOM = "plain";

export async function benchTti({ report, count = USUAL_COUNT, start }: Bench): Promise<void> {
  const daemon = await start({ guests: true });
  const provider = roomd({ url: daemon.url, apiKey: daemon.apiKey, memoryMib: MEMORY_MIB });
  const failures: unknown[] = [];

  /** One sandbox until its first command has ended; it ends outside of the time. */
  const interactive = async (): Promise<number> => {
    const startedAt = performance.now();
    try {
      const sandbox = await provider.sandbox.create();
      const { exitCode } = await sandbox.runCommand(COMMAND);
      const ms = performance.now() - startedAt;
      await sandbox.destroy();
      if (exitCode !== 0) throw new Error(`${COMMAND} ended with ${exitCode}`);
      return ms;
    } catch (error) {
      failures.push(error);
      return LIMIT_MS;
    }
  };

  await daemon.room(ROOM);
  // The daemon reads the whole template once.
  await interactive();
  const plain: number[] = [];
  const sequential: number[] = [];
  while (sequential.length < count) {
    plain.push(await plainly(daemon));
    sequential.push(await interactive());
  }
  const staggered = await Promise.all(
    Array.from({ length: count }, async (_, index) => {
      await Bun.sleep(index * INTERVAL_MS);
      return interactive();
    }),
  );
  const burst = await Promise.all(Array.from({ length: BURST }, interactive));
  report.add("plain", "ms", plain);
  report.add("sequential", "ms", sequential, "plain");
  report.add("staggered", "ms", staggered, "plain");
  report.add(`burst_x${BURST}`, "ms", burst, "plain");
  for (const failure of failures) console.error(`counted as ${LIMIT_MS} ms: ${failure}`);
}

async function plainly(daemon: TestDaemon): Promise<number> {
  const ms = await timed(async () => {
    await daemon.sandbox(ROOM, "main", GUEST_CID_MIN, { memory_mib: MEMORY_MIB });
    await daemon.exec(ROOM, "main", { command: COMMAND });
  });
  await daemon.ok("DELETE", `/v1/rooms/${ROOM}/sandboxes/main`);
  return ms;
}
