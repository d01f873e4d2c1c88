/** Operator commands that write to the daemon's database, with flushes of 1.5 s each. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { BINARY } from "../../harness/daemon.ts";
import { type Attack, call, keepCalling } from "../../harness/hostile/attack.ts";

const FLUSH_MICROSECONDS = 1_500_000;
/** Each flushes some times. */
const COMMANDS = 4;
const APART_MS = 2_000;

/** A disk that is so slow for one program. */
const SLOW = ["-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync,fdatasync"];
const INJECTED = `inject=fsync,fdatasync:delay_enter=${FLUSH_MICROSECONDS}`;

export default {
  title: "grants of credits by the command line beside writes, with flushes of 1.5 s",
  prepare: async (daemon) => {
    await daemon.room("r");
    return { env: daemon.env, org: daemon.orgId };
  },
  attack: async (target, count) => {
    const { env, org } = target.prepared as { env: Record<string, string>; org: string };
    const grant = async () => {
      const argv = [...SLOW, "-e", INJECTED, BINARY, "org", "credits", org, "--grant", "1"];
      const child = spawn("strace", argv, { env, detached: true, stdio: ["ignore", "ignore", "inherit"] });
      const end = () => process.kill(-Number(child.pid), "SIGKILL");
      process.once("exit", end);
      const [code] = await once(child, "exit");
      process.off("exit", end);
      count(`granted ${code}`);
    };
    // One commits in each two seconds from the first grant on.
    const first = Promise.withResolvers<void>();
    const lane = async (n: number): Promise<never> => {
      await Bun.sleep(n * APART_MS);
      for (;;) {
        await grant();
        first.resolve();
      }
    };
    const lanes = Array.from({ length: COMMANDS }, (_, n) => lane(n));
    await first.promise;
    await keepCalling(4, count, () =>
      call(target, "POST", "/v1/rooms/r/messages", { source: "b", topic: "none", payload: 1 }),
    );
    await Promise.all(lanes);
  },
} satisfies Attack;
