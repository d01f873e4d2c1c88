/** Faults of several hosts for histories: of the PostgreSQL between them, and of one host. Each lasts for a given time and ends then. */
import type { TestDaemon } from "../daemon.ts";
import { until } from "../guests.ts";
import type { Postgres } from "./postgres.ts";

export type Strikes = Readonly<Record<string, (ms: number) => Promise<unknown>>>;

/** For a PostgreSQL with its own network, which the third host reaches by its second address. */
export function databaseStrikes(postgres: Postgres): Strikes {
  return {
    "PostgreSQL is killed": async (ms) => {
      await postgres.kill();
      await Bun.sleep(ms / 2);
      await postgres.begin();
    },
    "sessions are ended": () => postgres.terminateSessions(),
    "PostgreSQL is frozen": async (ms) => {
      postgres.freeze();
      await Bun.sleep(ms);
      postgres.thaw();
    },
    "host-3 is cut off": async (ms) => {
      await postgres.cut("second");
      await Bun.sleep(ms);
      await postgres.join();
    },
  };
}

export function hostStrikes(host: TestDaemon): Strikes {
  return {
    "a host is killed": async () => {
      await host.end("SIGKILL");
      // Its port for hosts may have become another's for a moment.
      await until("the host's daemon serves again", () =>
        host.serve().then(
          () => true,
          () => false,
        ),
      );
    },
    "a host is stopped": async (ms) => {
      process.kill(host.pid, "SIGSTOP");
      await Bun.sleep(ms);
      process.kill(host.pid, "SIGCONT");
    },
  };
}
