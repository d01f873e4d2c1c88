/**
 * Owns the connection to one guest over time: the guest dials, is set up, and dials again whenever the
 * connection was lost. Whoever needs the guest asks for the link of the moment.
 */
import { randomBytes } from "node:crypto";
import { GENERATION, type Welcome } from "../../../shared/agent-protocol/messages.ts";
import type { Log } from "../../core/log.ts";
import { DeadlineError, Published } from "../../core/published.ts";
import { describeError } from "../../core/service-error.ts";
import { correctClock } from "./clock.ts";
import { Dials } from "./dials.ts";
import { type GuestLink, type GuestRequests, NOTHING_TO_ASK } from "./handshake.ts";

const HELLO_DEADLINE_MS = 5_000;
const SETUP_DEADLINE_MS = 30_000;
const PING_DEADLINE_MS = 10_000;
const PING_EVERY_MS = 10_000;
/** The kernel's pool takes this much in as full entropy. */
const ENTROPY_BYTES = 64;

/** What the guest is told about itself; entropy and clock are made at the moment of sending. */
export type GuestIdentity = Omit<Welcome, "generation" | "entropy_b64" | "clock_ns">;

interface ConnectionState {
  link: GuestLink | null;
  /** Why setting up failed; the guest is then of no use. */
  failure: string | null;
  /** Milliseconds of each stage of setting up, as the agent measured them. */
  stages_ms: Record<string, number>;
}

export class GuestConnection {
  readonly #guestCid: number;
  readonly #identity: GuestIdentity;
  readonly #requests: GuestRequests;
  readonly #log: Log;
  readonly #state = new Published<ConnectionState>({
    link: null,
    failure: null,
    stages_ms: {},
  });
  readonly #dials: Dials;
  #newest: GuestLink | null = null;
  #nonce: string | null;
  /** Why the last that dialled was refused. Any process in the guest can dial, so it is no failure of the agent's yet. */
  #refusal: string | null = null;
  #closed = false;

  /** `nonce` is that of a guest which was set up before; null for one that never was. */
  constructor(
    guestCid: number,
    identity: GuestIdentity,
    nonce: string | null,
    log: Log,
    requests: GuestRequests = NOTHING_TO_ASK,
  ) {
    this.#requests = requests;
    this.#guestCid = guestCid;
    this.#identity = identity;
    this.#nonce = nonce;
    this.#log = log;
    this.#dials = new Dials(log);
  }

  /** What the agent made when it was set up, by which the guest is recognised. */
  get nonce(): string | null {
    return this.#nonce;
  }

  get state(): Published<ConnectionState> {
    return this.#state;
  }

  /** Whether the agent has said who it is, over a connection that is there: it needs no more than time. */
  get isGreeted(): boolean {
    return this.#newest !== null && !this.#newest.isClosed;
  }

  /** Takes a connection that the guest made. The newest one that is its agent's counts. */
  accept(link: GuestLink): void {
    if (this.#closed) {
      link.close("the sandbox is ending");
      return;
    }
    if (!this.#dials.admit(link)) return;
    this.#setUp(link).catch((error: unknown) => {
      const failure = describeError(error);
      // One that was never set up has no nonce yet to be known by.
      const isAgents = this.#newest === link || (this.#newest === null && this.#nonce === null);
      // One that was is only slow, as on a host with much to do: it dials again.
      const isFinal = this.#nonce === null || !(error instanceof DeadlineError);
      this.#refusal = failure;
      if (isAgents && isFinal && !this.#closed) this.#change({ failure });
      this.#dials.refuse(link, failure);
    });
  }

  /** The link of the moment, waiting for one. Rejects when setting up failed; at the deadline with DeadlineError. */
  async link(deadlineMs: number, signal?: AbortSignal): Promise<GuestLink> {
    const wait = this.#state.until((state) => state.link !== null || state.failure !== null, deadlineMs, signal);
    const { link, failure } = await wait.catch((error: unknown) => {
      if (signal?.aborted || !(error instanceof DeadlineError)) throw error;
      throw new DeadlineError(this.#lateness(deadlineMs));
    });
    if (link) return link;
    throw new Error(failure ?? "the guest is not connected");
  }

  #lateness(deadlineMs: number): string {
    const late = `the guest's agent did not connect within ${deadlineMs / 1000} s`;
    return this.#refusal === null ? late : `${late}; what dialled was refused: ${this.#refusal}`;
  }

  /** Lets nothing through any more, to a guest that is about to stand still. Rejects when its agent does not answer. */
  async hold(deadlineMs: number): Promise<void> {
    const link = await this.link(deadlineMs);
    await link.hold(deadlineMs);
  }

  /** The same for a guest that stands still already. */
  freeze(): void {
    this.#newest?.freeze();
  }

  release(): void {
    this.#newest?.release();
  }

  close(reason: string): void {
    this.#closed = true;
    this.#dials.closeAll(reason);
    this.#newest?.close(reason);
    // Whoever waits for the guest to come back waits in vain.
    this.#change({ link: null, failure: reason });
  }

  async #setUp(link: GuestLink): Promise<void> {
    const timer = new StageTimer();
    const hello = await link.hello(HELLO_DEADLINE_MS);
    timer.mark("hello");
    if (hello.guest_cid !== this.#guestCid) {
      throw new Error(`the guest says it is CID ${hello.guest_cid}, not ${this.#guestCid}`);
    }
    // One that was set up before us is the one we know, or none of ours.
    if (hello.nonce !== (this.#nonce ?? "")) throw new Error("the guest is another one than was set up");
    this.#becomeNewest(link);
    const inGuest = await link.welcome(this.#welcome(), SETUP_DEADLINE_MS);
    timer.mark("setup");
    // Received and answered: only now is the way proven in both directions.
    await link.ping(PING_DEADLINE_MS);
    timer.mark("ping");
    await correctClock(link);
    timer.mark("clock_set");
    const stages_ms = { ...timer.stages_ms, ...inGuest.stages_ms };
    this.#nonce = inGuest.nonce;
    if (this.#newest !== link || this.#closed) return;
    this.#refusal = null;
    this.#change({ link, failure: null, stages_ms });
    void keepAsking(link);
    link.closed.then((reason) => {
      if (this.#newest !== link || this.#closed) return;
      this.#change({ link: null });
      this.#log.warn("guest connection lost", { reason });
    });
  }

  /** From now on it is the agent's. Until it is set up there is none. */
  #becomeNewest(link: GuestLink): void {
    this.#dials.settle(link);
    link.believe(this.#requests);
    const before = this.#newest;
    this.#newest = link;
    before?.close("the guest dialled again");
    if (before || this.#state.value.failure !== null) this.#change({ link: null, failure: null });
  }

  #welcome(): Welcome {
    return {
      generation: GENERATION,
      entropy_b64: randomBytes(ENTROPY_BYTES).toString("base64"),
      clock_ns: wallClockNs(),
      ...this.#identity,
    };
  }

  #change(change: Partial<ConnectionState>): void {
    this.#state.set({ ...this.#state.value, ...change });
  }
}

/** A guest that hangs keeps its connection open: only asking shows it. One that was told to stand still is not asked. */
async function keepAsking(link: GuestLink): Promise<void> {
  const { standstill } = link;
  while (!link.isClosed) {
    await standstill.over;
    const { times } = standstill;
    await link.ping(PING_DEADLINE_MS).catch((error: unknown) => {
      if (standstill.times === times) link.close(describeError(error));
    });
    await Promise.race([Bun.sleep(PING_EVERY_MS), link.closed]);
  }
}

class StageTimer {
  readonly stages_ms: Record<string, number> = {};
  #since = performance.now();

  mark(stage: string): void {
    const now = performance.now();
    this.stages_ms[stage] = Math.round((now - this.#since) * 10) / 10;
    this.#since = now;
  }
}

/** Nanoseconds since the epoch, finer than Date.now(). */
function wallClockNs(): string {
  return BigInt(Math.round((performance.timeOrigin + performance.now()) * 1000))
    .toString()
    .concat("000");
}
