/**
 * Clocks, timers, turns and randomness of this thread, given to the process of the event that runs. Installed before the daemon's
 * modules are loaded: some keep references of their own. Without a simulation the runtime's remain.
 */

import { readFileSync } from "node:fs";
import { plugin } from "bun";
import type { Replacement } from "./mutations.ts";
import { currentWorld, type World } from "./world.ts";

class SimulatedTimer {
  cancel: () => void;

  constructor(cancel: () => void) {
    this.cancel = cancel;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }
}

type Work = (...given: unknown[]) => void;

/** Calls `here` within a simulation, and the original outside of one. */
function replace<Owner extends object, Name extends keyof Owner>(owner: Owner, name: Name, here: unknown): void {
  const real = owner[name] as unknown as Work;
  const replaced = function (this: unknown, ...given: unknown[]) {
    const world = currentWorld();
    return world ? (here as (world: World, ...given: unknown[]) => unknown)(world, ...given) : real.apply(owner, given);
  };
  Object.defineProperty(owner, name, { value: replaced, writable: true, configurable: true });
}

function later(world: World, work: Work, ms = 0, ...given: unknown[]): SimulatedTimer {
  return new SimulatedTimer(world.after(Math.max(1, ms), world.current, () => work(...given)));
}

function again(world: World, work: Work, ms: number, ...given: unknown[]): SimulatedTimer {
  const process = world.current;
  const next = (): (() => void) =>
    world.after(Math.max(1, ms), process, () => {
      timer.cancel = next();
      work(...given);
    });
  const timer = new SimulatedTimer(() => {});
  timer.cancel = next();
  return timer;
}

function stop(_: World, timer: unknown): void {
  if (timer instanceof SimulatedTimer) timer.cancel();
}

const HERE = import.meta.dir;
const LOADED = /\/(daemon|shared)\/.*\.ts$/;
const SCHEDULER = /new LoopTime\((\{.*?\n\})\)/s;

function simulated(path: string, text: string): string {
  if (path.endsWith("/daemon/core/loop/index.ts")) {
    if (!SCHEDULER.test(text)) throw new Error(`${path} has no scheduler of the event loop`);
    // Each simulated process has its own.
    return text.replace(SCHEDULER, "globalThis.ofProcess(() => new LoopTime($1))");
  }
  if (path.endsWith("/daemon/db/client.ts")) return text.replace('from "bun:sqlite"', `from "${HERE}/sqlite.ts"`);
  if (path.endsWith("/shared/ids.ts"))
    return text.replace("= monotonicUlids()", "= globalThis.ofProcess(monotonicUlids)");
  if (path.endsWith("/rooms/checkpoints/room-state.ts"))
    return withFiles(text).replace('from "node:fs"', from).replace('from "node:readline"', from);
  // Two hundred directories for drives that are empty.
  if (path.endsWith("/host/files/store-places.ts"))
    return withFiles(text).replace("const SHARDS = 256", "const SHARDS = 1");
  return /\/daemon\/(domain\/rooms|host\/isolation)\/|\/host\/files\/gone\.ts$/.test(path) ? withFiles(text) : text;
}

/** Threads of the runtime and disks are waited for no more: files.ts takes their place. */
const from = `from "${HERE}/files.ts"`;

function withFiles(text: string): string {
  return text
    .replace(/from "node:fs\/promises"/g, from)
    .replace(/from "(\.\.\/)+host\/files\/(drive-copier|erase|holes)\.ts"/g, from)
    .replace(/(import \{ syncDirectory \}) from "(\.\.\/)+host\/files\/async-calls\.ts"/g, `$1 ${from}`);
}

/** The object of the process of the event that runs. */
function ofProcess<T extends object>(make: () => T): T {
  const outside = make();
  const name = {};
  const current = () => currentWorld()?.current?.own(name, make) ?? outside;
  return new Proxy(outside, {
    apply: (_, self, given) => Reflect.apply(current() as unknown as Work, self, given),
    get: (_, property) => {
      const own = current();
      const value = Reflect.get(own, property, own) as unknown;
      return typeof value === "function" ? (value as Work).bind(own) : value;
    },
  });
}

function replaced(text: string, path: string, { module, from, to }: Replacement): string {
  if (!path.endsWith(module)) return text;
  if (!text.includes(from)) throw new Error(`${path} has no ${from}`);
  return text.replace(from, to);
}

/** With faults in the daemon's modules, if some are given. */
export function installRuntime(mutation: readonly Replacement[]): void {
  replace(globalThis, "setTimeout", later);
  replace(globalThis, "setInterval", again);
  replace(
    globalThis,
    "setImmediate",
    (world: World, work: Work) => new SimulatedTimer(world.turn(world.current, work)),
  );
  for (const name of ["clearTimeout", "clearInterval", "clearImmediate"] as const) replace(globalThis, name, stop);
  replace(Date, "now", (world: World) => world.wallMs);
  replace(performance, "now", (world: World) => world.now);
  replace(Math, "random", (world: World) => world.chance.next());
  replace(crypto, "getRandomValues", (world: World, bytes: Uint8Array) => {
    for (let at = 0; at < bytes.length; at++) bytes[at] = world.chance.whole(0, 255);
    return bytes;
  });
  Object.assign(globalThis, { ofProcess });
  const read = (path: string) =>
    mutation.reduce((text, each) => replaced(text, path, each), readFileSync(path, "utf8"));
  plugin({
    name: "simulation",
    setup: (build) => {
      build.onLoad({ filter: LOADED }, ({ path }) => ({
        contents: simulated(path, read(path)),
        loader: "ts",
      }));
    },
  });
}
