/**
 * The connection to one guest over time: the guest dials, is set up, and dials again whenever the connection was lost. Callers get the
 * current link.
 *
 * A guest restored from saved memory was set up before: it gets a restore notice until it has carried that out.
 *
 * Authentication of the agent, before anything is sent to it. Applies if its recorded generation is AGENT_PROOF_GENERATION or newer:
 *
 *     source port   reserved, or the connection is closed when it is accepted; not checked if the device does not expose it
 *     hello         proof of the secret, once the guest has one: over vhost-user the only proof
 *     first setup   one connection at a time, since that has no secret to prove yet; no process of the guest but the agent
 *                   runs before it
 *     ready         the nonce, as with older agents, for which it is the only proof
 *
 * So a restored guest's new secret and environment go only to a process that proves the secret of the memory that it was restored from.
 */
import { randomBytes } from "node:crypto";
import { guestProof, hostProof, sameText } from "../../../shared/agent-protocol/host-proof.ts";
import {
  AGENT_PROOF_GENERATION,
  GENERATION,
  type Hello,
  PROOF_GENERATION,
  RESERVED_PORTS,
  type Restored,
  type Welcome,
} from "../../../shared/agent-protocol/messages.ts";
import { fineWallMs, monotonicMs, sleep } from "../../core/clock.ts";
import { DeadlineError, Published } from "../../core/concurrency/published.ts";
import type { Log } from "../../core/log.ts";
import { describeError } from "../../core/service-error.ts";
import { correctClock } from "./clock.ts";
import { Dials } from "./dials.ts";
import { type GuestLink, type GuestReady, type GuestRequests, NOTHING_TO_ASK } from "./handshake.ts";

/** Log message. */
export const CONNECTION_LOST = "guest connection lost";

const HELLO_DEADLINE_MS = 5_000;
const SETUP_DEADLINE_MS = 30_000;
/** Additional time for the sandbox's own hooks, after a restore. */
const HOOKS_MS = 20_000;
const PING_DEADLINE_MS = 10_000;
const PING_EVERY_MS = 10_000;
/** The kernel's pool accepts this much as full entropy. */
const ENTROPY_BYTES = 64;

const SECRET_BYTES = 32;

export const ANOTHER_GUEST = "the guest is not the one that was set up";
export const UNPROVEN_AGENT = "it cannot prove that it is the guest's agent";
const BUSY = "the guest is being set up over another connection";
export const CANNOT_RESTORE = "the guest's agent is older, and cannot become another sandbox or be rolled back";

/** Identity that is sent to the guest; entropy and clock are added at the moment of sending. */
export type GuestIdentity = Omit<Welcome, "generation" | "secret" | "proof" | "entropy_b64" | "clock_ns" | "restored">;

/** Credentials by which a guest and its host recognize each other; never sent to third parties, logged or shown. */
export interface Acquaintance {
  /** Secret by which the host proves itself; null if the agent is older than PROOF_GENERATION. */
  secret: string | null;
  /** Made by the agent when it was set up; null before. */
  nonce: string | null;
}

/** A guest's agent according to its record, which the guest cannot change. */
export interface KnownAgent extends Acquaintance {
  generation: number;
}

/** The agent of a guest that is not set up yet, by the agent's generation. */
export function strangers(generation: number): KnownAgent {
  return { generation, secret: generation >= PROOF_GENERATION ? newSecret() : null, nonce: null };
}

/** Restore notice for a guest that is restored from saved memory. */
export function restoredAs(how: Restored["how"]): Restored {
  return how === "resumed" ? { how } : { how, secret: newSecret() };
}

function newSecret(): string {
  return randomBytes(SECRET_BYTES).toString("hex");
}

interface ConnectionState {
  link: GuestLink | null;
  /** The reason of a failed setup, after which the guest is unusable. */
  failure: string | null;
  /** Milliseconds of each stage of setting up, as the agent measured them. */
  stages_ms: Record<string, number>;
  /** Whether the guest's agent supports restore notices, so that the guest's memory may be saved. Null until it was linked. */
  restores: boolean | null;
}

/**
 * `startMs` is additional time for a guest that still has to start its template's programs. `restored` is the restore notice for a guest
 * from saved memory; its known agent is then the one of the save.
 */
export class GuestConnection {
  readonly #guestCid: number;
  readonly #identity: GuestIdentity;
  readonly #requests: GuestRequests;
  readonly #startMs: number;
  readonly #log: Log;
  readonly #state = new Published<ConnectionState>({
    link: null,
    failure: null,
    stages_ms: {},
    restores: null,
  });
  readonly #dials: Dials;
  /** The latest connection that said hello as the agent does; not proven yet. */
  #greeted: GuestLink | null = null;
  /** The link of the guest's first setup. */
  #first: GuestLink | null = null;
  /** The agent's. */
  #newest: GuestLink | null = null;
  readonly #generation: number;
  #secret: string | null;
  #nonce: string | null;
  /** Null once the guest has received and answered it. */
  #restored: Restored | null;
  /** The reason of the last refused dial. Any process in the guest can dial, so it is no failure of the agent's yet. */
  #refusal: string | null = null;
  #closed = false;

  constructor(
    guestCid: number,
    identity: GuestIdentity,
    { generation, secret, nonce }: KnownAgent,
    log: Log,
    requests: GuestRequests = NOTHING_TO_ASK,
    startMs = 0,
    restored: Restored | null = null,
  ) {
    this.#requests = requests;
    this.#startMs = startMs;
    this.#guestCid = guestCid;
    this.#identity = identity;
    this.#generation = generation;
    this.#secret = secret;
    this.#nonce = nonce;
    this.#restored = restored;
    this.#log = log;
    this.#dials = new Dials(log);
  }

  /** Must be stored for the next daemon before the guest runs. Changes once a restored guest is linked. */
  get acquaintance(): Acquaintance {
    return { secret: this.#secret, nonce: this.#nonce };
  }

  get state(): Published<ConnectionState> {
    return this.#state;
  }

  /** Whether the agent has said hello over an open connection: it needs nothing but time. */
  get isGreeted(): boolean {
    return this.#greeted !== null && !this.#greeted.isClosed;
  }

  /**
   * Whether a connection is open that may still become the agent's: it came over a working vsock device. A connection that has to prove
   * itself by its hello counts from then on, a few ms later: others of its kind must not keep a lost device in place.
   */
  get isBeingMet(): boolean {
    return this.isGreeted || this.#dials.areWaiting;
  }

  /** Accepts a connection from the guest. The newest of its agent's connections counts. */
  accept(link: GuestLink): void {
    if (this.#closed) {
      link.close("the sandbox is ending");
      return;
    }
    const { from } = link.ports;
    if (this.#provesItself && from !== null && from >= RESERVED_PORTS) {
      this.#refusal = `it dialled from port ${from}, which any process of the guest may use`;
      this.#dials.refuse(link, this.#refusal);
      return;
    }
    if (!this.#dials.admit(link, this.#provesItself && from === null ? "anyones" : "agents")) return;
    const isFirst = this.#nonce === null;
    this.#setUp(link).catch((error: unknown) => {
      const failure = describeError(error);
      // A guest that was never set up has no nonce for recognition yet, but is set up over one connection.
      const mayBeFirst = isFirst && (this.#first === null || this.#first === link);
      const isAgents = this.#newest === link || (this.#newest === null && mayBeFirst);
      // A guest that was set up is only slow, as on a busy host: it dials again.
      const isLate = !isFirst && error instanceof DeadlineError;
      // A guest that was set up also dials again if its connection was lost, as with a vsock device that is replaced.
      const isLost = this.#nonce !== null && link.isLost;
      // A connection that ended before its hello is not final either: on a slow host an agent aborts a dial that is answered late, and
      // dials again.
      const isFinal = !isLate && !isLost && link.hasSaidHello;
      this.#refusal = failure;
      if (isAgents && isFinal && !this.#closed) this.#change({ failure });
      this.#dials.refuse(link, failure);
    });
  }

  /** The current link, or the next one. Rejects when setting up failed; at the deadline with DeadlineError. */
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
    return this.#refusal === null ? late : `${late}; a connection was rejected: ${this.#refusal}`;
  }

  /** Holds all traffic to a guest that is about to be paused. Rejects if its agent does not answer. */
  async hold(deadlineMs: number): Promise<void> {
    const link = await this.link(deadlineMs);
    await link.hold(deadlineMs);
  }

  /** The same for a guest that is already paused. */
  freeze(): void {
    for (const link of this.#links) link.freeze();
  }

  release(): void {
    for (const link of this.#links) link.release();
  }

  get #links(): Set<GuestLink> {
    return new Set([this.#newest, this.#greeted].filter((link) => link !== null));
  }

  close(reason: string): void {
    this.#closed = true;
    this.#dials.closeAll(reason);
    this.#newest?.close(reason);
    // Callers that wait for the guest to come back would wait in vain.
    this.#change({ link: null, failure: reason });
  }

  async #setUp(link: GuestLink): Promise<void> {
    const timer = new StageTimer();
    const hello = await link.hello(HELLO_DEADLINE_MS);
    timer.mark("hello");
    this.#check(hello, link);
    if (!this.#dials.promote(link)) return;
    this.#greeted = link;
    if (this.#nonce === null) this.#first = link;
    const moreMs = (this.#nonce === null ? this.#startMs : 0) + (this.#restored === null ? 0 : HOOKS_MS);
    const deadlineMs = SETUP_DEADLINE_MS + moreMs;
    const inGuest = await link.welcome(this.#welcome(hello, link.ports.to), deadlineMs, (ready) => {
      this.#recognise(ready);
      this.#becomeNewest(link);
    });
    timer.mark("setup");
    // The answer also proves that the connection works in both directions.
    await correctClock(link);
    timer.mark("clock_set");
    const stages_ms = { ...timer.stages_ms, ...inGuest.stages_ms };
    if (this.#newest !== link || this.#closed) return;
    this.#refusal = null;
    this.#change({ link, failure: null, stages_ms, restores: hello.restores === true });
    void keepAsking(link);
    link.closed.then((reason) => {
      if (this.#newest !== link || this.#closed) return;
      this.#change({ link: null });
      this.#log.warn(CONNECTION_LOST, { reason });
    });
  }

  /** Throws if it is not the agent's hello. A guest that was set up before us is either the one we know, or not ours. */
  #check(hello: Hello, link: GuestLink): void {
    const { guest_cid, nonce, generation, challenge, restores } = hello;
    if (guest_cid !== this.#guestCid) throw new Error(`the guest reports CID ${guest_cid}, not ${this.#guestCid}`);
    if (generation < this.#generation) {
      throw new Error(`the guest's agent has generation ${generation}, which is older than its template's`);
    }
    const isSetUp = this.#nonce !== null;
    const isOurs = this.#secret === null ? sameText(nonce, this.#nonce ?? "") : !isSetUp || challenge !== undefined;
    if (!isOurs) throw new Error(ANOTHER_GUEST);
    const isProven = this.#isProven(hello, link.ports.to);
    if (this.#provesItself && challenge !== undefined && !isProven) throw new Error(UNPROVEN_AGENT);
    // The agent makes one connection at a time, and programs that it starts during the setup may dial.
    const isElsewhere = !isSetUp && this.#first !== null && !this.#first.isClosed;
    if (isElsewhere && !isProven) throw new Error(BUSY);
    if (this.#restored?.secret !== undefined && !restores) throw new Error(CANNOT_RESTORE);
  }

  get #provesItself(): boolean {
    return this.#generation >= AGENT_PROOF_GENERATION;
  }

  /** Whether a hello proves one of the secrets that the agent may have: the recorded one, or that of the restore in progress. */
  #isProven({ guest_cid, challenge, proofs = [] }: Hello, port: number): boolean {
    if (challenge === undefined) return false;
    const secrets = [this.#secret, this.#restored?.secret].filter((secret) => typeof secret === "string");
    const right = secrets.map((secret) => guestProof(secret, guest_cid, port, challenge));
    return proofs.some((proof) => right.some((each) => sameText(proof, each)));
  }

  /** Throws if it is not the guest that was set up: only its agent knows the nonce, and reveals it to this host alone. */
  #recognise({ nonce, before }: GuestReady): void {
    const another = this.#restored?.secret;
    const known = another === undefined ? nonce : before;
    if (known === undefined || !sameText(known, this.#nonce ?? known)) throw new Error(ANOTHER_GUEST);
    if (another !== undefined) this.#secret = another;
    this.#nonce = nonce;
    this.#restored = null;
  }

  /** Makes the link the agent's. Absent until the link is set up. */
  #becomeNewest(link: GuestLink): void {
    this.#dials.settle(link);
    link.believe(this.#requests);
    const before = this.#newest;
    this.#newest = link;
    before?.close("the guest dialled again");
    if (before || this.#state.value.failure !== null) this.#change({ link: null, failure: null });
  }

  #welcome({ challenge, restores }: Hello, port: number): Welcome {
    const secret = this.#secret;
    const restored = restores ? this.#restored : null;
    // With a new secret the agent gets its environment, as at the first setup. Before AGENT_PROOF_GENERATION any process of the guest may
    // get both.
    const hasEnv = this.#nonce !== null && restored?.secret === undefined;
    return {
      generation: GENERATION,
      ...(secret !== null && challenge === undefined ? { secret } : {}),
      ...(secret !== null && challenge !== undefined ? { proof: hostProof(secret, port, challenge) } : {}),
      entropy_b64: randomBytes(ENTROPY_BYTES).toString("base64"),
      clock_ns: wallClockNs(),
      ...this.#identity,
      // An agent that is set up has the environment already, and a process that only claims to be the agent must not receive it.
      ...(hasEnv ? { env: {} } : {}),
      ...(restored && { restored }),
    };
  }

  #change(change: Partial<ConnectionState>): void {
    this.#state.set({ ...this.#state.value, ...change });
  }
}

/** A guest that hangs keeps its connection open: only a ping detects it. A paused guest is not pinged. */
async function keepAsking(link: GuestLink): Promise<void> {
  const { standstill } = link;
  while (!link.isClosed) {
    await standstill.over;
    const { times } = standstill;
    await link.ping(PING_DEADLINE_MS).catch((error: unknown) => {
      if (standstill.times === times) link.close(describeError(error));
    });
    // Not raced against the link's end: each race would retain memory for as long as the link exists.
    await sleep(PING_EVERY_MS);
  }
}

class StageTimer {
  readonly stages_ms: Record<string, number> = {};
  #since = monotonicMs();

  mark(stage: string): void {
    const now = monotonicMs();
    this.stages_ms[stage] = Math.round((now - this.#since) * 10) / 10;
    this.#since = now;
  }
}

/** Wall-clock time in nanoseconds since 1970. */
function wallClockNs(): string {
  return BigInt(Math.round(fineWallMs() * 1000))
    .toString()
    .concat("000");
}
