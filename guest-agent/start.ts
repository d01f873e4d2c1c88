/**
 * Owns what a recipe wants running in every sandbox: its script `start` runs once, or its image's entry point is begun, then its script `ready` is asked until it ends with 0.
 *
 * In a template that is before it is saved, so that clones find it running; it is saved at rest, and goes on in each of them once that is
 * set up: what it does when the clock jumps is in nobody's way before. Lest all go on with the same random numbers, its script
 * `before_save` may end what is at rest and is begun anew by the others, and its script `restored` runs in each clone before the first
 * command. A guest that boots by itself begins it before its first command. None has a connection to the host yet, so there is no network
 * to ask.
 */
import { closeSync, existsSync, mkdirSync, openSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { ImageDefaults } from "../shared/agent-protocol/messages.ts";
import { RUNTIME } from "../shared/agent-protocol/runtime.ts";
import type { Cgroup } from "./exec/cgroup.ts";
import { DEFAULT_PATH, environmentOf } from "./exec/environment.ts";
import { findProgram } from "./exec/program.ts";
import { usualPlace } from "./exec/start-place.ts";
import { commandAs, ROOT, userFor } from "./exec/user.ts";
import { IMAGE } from "./image-defaults.ts";
import { asOthers } from "./precedence.ts";
import type { Reaper } from "./reap.ts";
import { runInTime } from "./run-in-time.ts";
import { SCRIPT_SHELL } from "./runtime.ts";

const LOG = "/var/log/roomd-start.log";
const ASK_AGAIN_MS = 1000;
/** What is still there then stays, as far as anybody can say who has no `ready` to ask. */
const STAYS_MS = 2000;
/** Of `restored`, for which a create waits, and of `before_save`. */
const HOOK_MS = 20_000;
/** What goes on has much to do at first; whoever asked for the sandbox has a command for it. Who waits for what goes on leaves it all. */
const LAST_FOR_MS = 2_000;

type Hook = "before_save" | "restored";
const HOOKS: ReadonlySet<string> = new Set<Hook>(["before_save", "restored"]);
/** What is told of a failure; the host keeps a console's last 8 KiB. */
const TOLD_LINES = 20;
const TOLD_LINE_CHARS = 200;

/** Why it is not up, in a sentence without its full stop, and what its programs printed last. */
export class StartFailed extends Error {
  readonly lastLines: string[];

  constructor(why: string, lastLines: string[]) {
    super(why);
    this.lastLines = lastLines;
  }
}

/** Where what would be started is still to be made. */
export const NOTHING_TO_START: Pick<Start, "goOn"> = { goOn: async () => {} };

interface StartDeps {
  /** Where its scripts are. */
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
  /** In which all of it is; null where nothing was begun, and without cgroups. */
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

  /** Resolves once all of it is up, however often it is asked. Rejects with StartFailed; whoever asks then has it tried again. */
  bringUp(): Promise<void> {
    this.#up ??= this.isWanted ? this.#tryToBringUp() : Promise.resolve();
    return this.#up;
  }

  /** Nothing of it runs from then on, until it goes on. Rejects with StartFailed. */
  async rest(): Promise<void> {
    await this.#cgroup?.freeze();
    await this.#runHook("before_save");
    // Not before: what was ended there still has to end.
    this.#cgroup?.comeLast();
  }

  /** Resolves once a sandbox has what its recipe wants running: it is begun, or told that it goes on in another machine than it was saved in. */
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

  /** Begins the image's entry point as the image says. One that is gone again at once, and not well, is not up. */
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

  /** Null where its time was up. */
  #exitCode(script: string, deadline: number): Promise<number | null> {
    return runInTime({
      argv: [...SCRIPT_SHELL, this.#script(script)],
      env: environmentOf(ROOT),
      log: this.#log,
      deadline,
      reaper: this.#reaper,
      // A create waits for `restored`: it comes before what has just gone on. What is at rest would take in `before_save`.
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
