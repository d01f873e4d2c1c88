/**
 * Shared connections to screens: one per sandbox, opened when a call needs it, closed after a minute without use, when the sandbox ends or
 * pauses, and when the daemon stops. If memory for frames is short, unused connections are closed in LRU order.
 */

import { monotonicMs, startTimer, stopTimer } from "../../core/clock.ts";
import { ownerOf } from "../../core/loop/index.ts";
import { ServiceError } from "../../core/service-error.ts";
import { connectToScreen } from "../../host/guest-link/connect.ts";
import type { GuestLink } from "../../host/guest-link/handshake.ts";
import type { SandboxAccess, ScreenDeps, ScreenTarget } from "./deps.ts";
import { screenError } from "./errors.ts";
import { FrameMemory } from "./frame-memory.ts";
import { RfbClient } from "./rfb/client.ts";
import { type Allowances, freshAllowances } from "./rfb/limits.ts";

const UNUSED_MS = 60_000;
/** Maximum of actions that wait for their turn at one screen. */
const MAX_WAITING = 16;

interface Entry {
  org_id: string;
  client: Promise<RfbClient>;
  /** The client once it is connected. */
  opened: RfbClient | null;
  users: number;
  usedAt: number;
  timer?: Timer;
  /** Actions are executed one at a time. */
  turn: Promise<unknown>;
  waiting: number;
}

export class Connections {
  readonly #sandboxes: SandboxAccess;
  readonly #unusedMs: number;
  readonly #entries = new Map<string, Entry>();
  readonly #memory: FrameMemory;
  /** By sandbox, while it runs: a new connection does not reset its allowance. */
  readonly #allowances = new Map<string, Allowances>();

  constructor({ sandboxes, unusedMs = UNUSED_MS, frameBytes }: ScreenDeps) {
    this.#sandboxes = sandboxes;
    this.#unusedMs = unusedMs;
    this.#memory = new FrameMemory(
      (orgId) => this.#endUnused(orgId),
      (orgId) => this.#endNewest(orgId),
      frameBytes,
    );
  }

  /**
   * Runs `work` without queueing behind other calls. `signal` is the call's. Throws invalid_state, guest_unreachable,
   * insufficient_capacity, and errors of withLink.
   */
  use<T>(target: ScreenTarget, signal: AbortSignal, work: (client: RfbClient) => Promise<T>): Promise<T> {
    return this.#sandboxes.withLink(target, async (link) => {
      const entry = this.#enter(target, link);
      try {
        return await work(await entry.client);
      } catch (error) {
        throw screenError(error, target.row.agent_id, signal);
      } finally {
        this.#leave(target.row.sandbox_id, entry);
      }
    });
  }

  /** Like `use`, but after all previous calls have finished. */
  useAlone<T>(target: ScreenTarget, signal: AbortSignal, work: (client: RfbClient) => Promise<T>): Promise<T> {
    return this.use(target, signal, async (client) => {
      const entry = this.#entries.get(target.row.sandbox_id);
      if (!entry) return await work(client);
      // The current action is counted too.
      if (entry.waiting > MAX_WAITING) {
        throw new ServiceError("insufficient_capacity", { detail: `${MAX_WAITING} actions wait for this screen.` });
      }
      entry.waiting++;
      const mine = entry.turn.then(() => work(client));
      entry.turn = mine.catch(() => {}).finally(() => entry.waiting--);
      return await mine;
    });
  }

  stop(): void {
    for (const [sandboxId, entry] of [...this.#entries]) this.#end(sandboxId, entry, new ServiceError("shutting_down"));
  }

  #enter({ row }: ScreenTarget, link: GuestLink): Entry {
    const entry = this.#entries.get(row.sandbox_id) ?? this.#open(row, link);
    stopTimer(entry.timer);
    entry.users++;
    return entry;
  }

  #leave(sandboxId: string, entry: Entry): void {
    entry.users--;
    entry.usedAt = monotonicMs();
    if (entry.users > 0 || this.#entries.get(sandboxId) !== entry) return;
    entry.timer = startTimer(() => this.#end(sandboxId, entry, new Error("it is unused")), this.#unusedMs);
  }

  #open({ sandbox_id, org_id }: ScreenTarget["row"], link: GuestLink): Entry {
    const over = new AbortController();
    const connect = async () => {
      const port = await connectToScreen(link);
      port.ended.catch(() => {});
      const opened = await RfbClient.open(port, {
        hold: (bytes) => this.#memory.hold(org_id, bytes),
        allowances: this.#allowancesOf(sandbox_id),
        owner: ownerOf(org_id),
      });
      entry.opened = opened;
      return opened;
    };
    const entry: Entry = {
      org_id,
      client: Promise.resolve().then(connect),
      opened: null,
      users: 0,
      usedAt: monotonicMs(),
      turn: Promise.resolve(),
      waiting: 0,
    };
    this.#entries.set(sandbox_id, entry);
    const forget = () => {
      over.abort();
      stopTimer(entry.timer);
      if (this.#entries.get(sandbox_id) === entry) this.#entries.delete(sandbox_id);
    };
    entry.client.then(({ over: ended }) => ended).then(forget, forget);
    void this.#sandboxes.stopped(sandbox_id, over.signal).then((state) => {
      const details = { state, allowed_states: ["running"] };
      this.#end(sandbox_id, entry, new ServiceError("invalid_state", { detail: `The sandbox is ${state}.`, details }));
    });
    return entry;
  }

  #end(sandboxId: string, entry: Entry, reason: Error): void {
    stopTimer(entry.timer);
    if (this.#entries.get(sandboxId) === entry) this.#entries.delete(sandboxId);
    entry.opened?.close(reason);
    entry.client.then(
      (client) => client.close(reason),
      () => {},
    );
  }

  #allowancesOf(sandboxId: string): Allowances {
    const known = this.#allowances.get(sandboxId);
    if (known) return known;
    const made = freshAllowances();
    this.#allowances.set(sandboxId, made);
    void this.#sandboxes.stopped(sandboxId, new AbortController().signal).then(() => {
      if (this.#allowances.get(sandboxId) === made) this.#allowances.delete(sandboxId);
    });
    return made;
  }

  /** Closes the least recently used idle connection, of the organization or for null of any; false if all are in use. */
  #endUnused(orgId: string | null): boolean {
    const unused = [...this.#entries].filter(
      ([, { opened, users, org_id }]) => opened !== null && users === 0 && (orgId ?? org_id) === org_id,
    );
    const [longest] = unused.sort(([, one], [, other]) => one.usedAt - other.usedAt);
    if (longest) this.#end(...longest, new Error("others need the memory"));
    return longest !== undefined;
  }

  #endNewest(orgId: string): boolean {
    const newest = [...this.#entries].findLast(([, { opened, org_id }]) => opened !== null && org_id === orgId);
    const detail = "Screens of another organization need their share of this host's memory for screens.";
    if (newest) this.#end(...newest, new ServiceError("insufficient_capacity", { detail }));
    return newest !== undefined;
  }
}
