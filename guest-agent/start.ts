/**
 * Programs that a recipe starts in every sandbox: its script `start` runs once, or its image's entry point is started, then its script
 * `ready` is polled until it exits with 0.
 *
 * In a template this happens before it is saved, so that clones find the programs running. It is saved with these programs frozen, and each
 * clone thaws them once it is set up, so timers that fire on the clock jump do not delay the set-up. So that clones do not continue with
 * the same random numbers, the script `before_save` may end frozen programs that a supervisor restarts, and the script `restored` runs in
 * each clone before its first command. A guest that boots without a template starts the programs before its first command. None of these
 * scripts has a connection to the host yet, so there is no network.
 */
import { closeSync, existsSync, mkdirSync, openSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { ImageDefaults } from "../shared/agent-protocol/messages.ts";
import { RUNTIME } from "../shared/agent-protocol/runtime.ts";
import { asOthers } from "./cpu-priority.ts";
import type { Cgroup } from "./exec/cgroup.ts";
import { DEFAULT_PATH, environmentOf } from "./exec/environment.ts";
import { usualPlace } from "./exec/preflight.ts";
import { findProgram } from "./exec/program.ts";
import { commandAs, ROOT, userFor } from "./exec/user.ts";
import { IMAGE } from "./image-defaults.ts";
import type { Reaper } from "./reap.ts";
import { runInTime } from "./run-in-time.ts";
import { SCRIPT_SHELL } from "./runtime.ts";

const LOG = "/var/log/roomd-start.log";
const ASK_AGAIN_MS = 1000;
/** A program that is still running after this time counts as up, if there is no `ready` script. */
const STAYS_MS = 2000;
/** Time limit of the hooks `restored`, for which a create waits, and `before_save`. */
const HOOK_MS = 20_000;
/**
 * Thawed programs are busy at first, while the caller's first command is waiting: they get the lowest CPU weight for 2 s. A command that
 * waits for these programs uses no CPU and so leaves all of it to them.
 */
const LAST_FOR_MS = 2_000;

type Hook = "before_save" | "restored";
const HOOKS: ReadonlySet<string> = new Set<Hook>(["before_save", "restored"]);
/** Limits of a failure report; the host keeps a console's last 8 KiB. */
const TOLD_LINES = 20;
const TOLD_LINE_CHARS = 200;

/** Why the programs are not up, as a sentence without its full stop, and the last lines of their output. */
export class StartFailed extends Error {
  readonly lastLines: string[];

  constructor(why: string, lastLines: string[]) {
    super(why);
    this.lastLines = lastLines;
  }
}

/** For a guest in which the programs to start are still to be built. */
export const NOTHING_TO_START: Pick<Start, "goOn"> = { goOn: async () => {} };

interface StartDeps {
  /** Directory of its scripts. */
  place: string;
  log: string;
  image: Pick<ImageDefaults, "start">;
  takeCgroup(): Cgroup | null;
}

export class Start {
  readonly #reaper: Pick<Reaper, "spare">;
  readonly #place: string;
  readonly #log: string;
  readonly #image: Pick<ImageDefaults, "start">;
  readonly #takeCgroup: StartDeps["takeCgroup"];
  /** The cgroup of all started programs; null if nothing was started, and without cgroups. */
  #cgroup: Cgroup | null = null;
  #up: Promise<void> | null = null;

  constructor(
    reaper: Pick<Reaper, "spare">,
    { place = RUNTIME, log = LOG, image = IMAGE, takeCgroup = () => null }: Partial<StartDeps> = {},
  ) {
    this.#reaper = reaper;
    this.#place = place;
    this.#log = log;
    this.#image = image;
    this.#takeCgroup = takeCgroup;
  }

  /** Whether the recipe wants anything. */
  get isWanted(): boolean {
    return existsSync(this.#script("start")) || this.#image.start !== null;
  }

  /** Resolves once all of it is up; repeated calls share one attempt. Rejects with StartFailed; the next call retries. */
  bringUp(): Promise<void> {
    this.#up ??= this.isWanted ? this.#tryToBringUp() : Promise.resolve();
    return this.#up;
  }

  /** Freezes all started programs until `goOn`. Rejects with StartFailed. */
  async rest(): Promise<void> {
    await this.#cgroup?.freeze();
    await this.#runHook("before_save");
    // After the hook: programs that it ends need their CPU time to exit.
    this.#cgroup?.comeLast();
  }

  /**
   * Resolves once a sandbox has its recipe's programs running: starts them, or thaws them and runs `restored`, if they were saved in
   * another machine.
   */
  async goOn(): Promise<void> {
    if (this.#up === null) return await this.bringUp();
    await this.#up;
    this.#cgroup?.thaw(LAST_FOR_MS);
    await this.#runHook("restored");
  }

  async #runHook(script: Hook): Promise<void> {
    if (existsSync(this.#script(script))) await this.#require(script, performance.now() + HOOK_MS);
  }

  async #tryToBringUp(): Promise<void> {
    mkdirSync(dirname(this.#log), { recursive: true });
    this.#cgroup ??= this.#takeCgroup();
    try {
      await this.#bringUp();
    } catch (error) {
      this.#up = null;
      throw error;
    }
  }

  async #bringUp(): Promise<void> {
    const deadline = performance.now() + Number(readFileSync(this.#script("ready-timeout"), "utf8")) * 1000;
    if (this.#image.start === null) await this.#require("start", deadline);
    else await this.#startImage(this.#image.start);
    if (!existsSync(this.#script("ready"))) return;
    while (!(await this.#run("ready", deadline))) {
      if (performance.now() > deadline) throw this.#failed("ready did not end with 0 in time");
      await sleep(ASK_AGAIN_MS);
    }
  }

  /** Starts the image's entry point as the image defines it. If it exits immediately with a failure, it is not up. */
  async #startImage(argv: string[]): Promise<void> {
    const user = userFor(null);
    if (user === null) throw this.#failed("the image's user is not there");
    const [cwd, env] = [usualPlace(user), environmentOf(user)];
    const program = findProgram(argv[0] ?? "", cwd, env.PATH ?? DEFAULT_PATH);
    if ("reason" in program) throw this.#failed(`the image's ${argv[0]}: ${program.reason}`);
    const out = openSync(this.#log, "a", 0o640);
    try {
      const child = this.#begin(() =>
        Bun.spawn(commandAs(user, [program.path, ...argv.slice(1)]), {
          ...{ cwd, env, detached: true, stdio: ["ignore", out, out] },
        }),
      );
      this.#reaper.spare(child);
      const ended = await Promise.race([child.exited, sleep(STAYS_MS, null)]);
      if (ended !== null && ended !== 0) throw this.#failed(`the image's ${argv[0]} ended with ${ended}`);
    } finally {
      closeSync(out);
    }
  }

  async #require(script: string, deadline: number): Promise<void> {
    const code = await this.#exitCode(script, deadline);
    if (code === null) throw this.#failed(`${script} did not end in time`);
    if (code !== 0) throw this.#failed(`${script} ended with ${code}`);
  }

  async #run(script: string, deadline: number): Promise<boolean> {
    return (await this.#exitCode(script, deadline)) === 0;
  }

  /** Null on timeout. */
  #exitCode(script: string, deadline: number): Promise<number | null> {
    return runInTime({
      argv: [...SCRIPT_SHELL, this.#script(script)],
      env: environmentOf(ROOT),
      log: this.#log,
      deadline,
      reaper: this.#reaper,
      // A create waits for `restored`, so it has priority over the thawed programs. `before_save` would be frozen in their cgroup.
      begin: (spawn) => (HOOKS.has(script) ? spawn() : this.#begin(spawn)),
    });
  }

  #begin<T>(spawn: () => T): T {
    return asOthers(() => (this.#cgroup ? this.#cgroup.begin(spawn) : spawn()));
  }

  #failed(why: string): StartFailed {
    const lines = existsSync(this.#log) ? readFileSync(this.#log, "utf8").trimEnd().split("\n") : [];
    return new StartFailed(
      why,
      lines.slice(-TOLD_LINES).map((line) => line.slice(0, TOLD_LINE_CHARS)),
    );
  }

  #script(name: string): string {
    return `${this.#place}/${name}`;
  }
}
