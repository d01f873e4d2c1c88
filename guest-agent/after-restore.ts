/**
 * The sandbox user's restore hooks: programs in a directory that root runs in name order after each restore, before the host gets its
 * `ready`. There is no network during the hooks: it comes with that reply.
 *
 * A hook that fails or times out is logged; neither stops the restore. If the reply to a resume is lost, the hooks run again.
 */
import { mkdirSync, readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Restored } from "../shared/agent-protocol/messages.ts";
import { asOthers } from "./cpu-priority.ts";
import { environmentOf } from "./exec/environment.ts";
import { ROOT } from "./exec/user.ts";
import { log } from "./log.ts";
import type { Reaper } from "./reap.ts";
import { runInTime } from "./run-in-time.ts";

const PLACE = "/etc/roomd/after-restore.d";
const OUTPUT = "/var/log/roomd-after-restore.log";
/** Time limit of all hooks together, since the restore waits for them. */
const TIME_MS = 20_000;
const EXECUTABLE = 0o111;

interface Deps {
  place: string;
  /** The file to which the hooks' output is written. */
  output: string;
  timeMs: number;
  report: typeof log;
}

export class AfterRestore {
  readonly #reaper: Pick<Reaper, "spare">;
  readonly #deps: Deps;

  constructor(
    reaper: Pick<Reaper, "spare">,
    { place = PLACE, output = OUTPUT, timeMs = TIME_MS, report = log }: Partial<Deps> = {},
  ) {
    this.#reaper = reaper;
    this.#deps = { place, output, timeMs, report };
  }

  /** Resolves once all hooks have ended, or the time limit is over; never rejects. */
  async run(how: Restored["how"], env: Record<string, string>): Promise<void> {
    const { output, timeMs, report } = this.#deps;
    const deadline = performance.now() + timeMs;
    const environment = { ...environmentOf(ROOT), ...env, ROOMD_RESTORED: how };
    // A timer may fire slightly early; a hook killed by the timeout is the last one either way.
    let isOver = false;
    for (const hook of this.#hooks()) {
      if (isOver || performance.now() >= deadline) {
        report(`${hook} was not run: the time of all hooks was up`);
        continue;
      }
      try {
        mkdirSync(dirname(output), { recursive: true });
        const code = await runInTime({
          ...{ argv: [hook], env: environment, log: output, deadline },
          reaper: this.#reaper,
          begin: asOthers,
        });
        isOver = code === null;
        if (code !== 0) report(code === null ? `${hook} did not end in time` : `${hook} ended with ${code}`);
      } catch (error) {
        report(hook, error);
      }
    }
  }

  #hooks(): string[] {
    const { place, report } = this.#deps;
    try {
      return namesIn(place)
        .filter((name) => !name.startsWith("."))
        .sort()
        .map((name) => join(place, name))
        .filter(isExecutable);
    } catch (error) {
      report(place, error);
      return [];
    }
  }
}

function namesIn(directory: string): string[] {
  return statSync(directory, { throwIfNoEntry: false }) ? readdirSync(directory) : [];
}

/** Follows symbolic links. */
function isExecutable(path: string): boolean {
  try {
    const file = statSync(path);
    return file.isFile() && (file.mode & EXECUTABLE) !== 0;
  } catch {
    return false;
  }
}
