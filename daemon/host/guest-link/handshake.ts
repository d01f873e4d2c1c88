/**
 * Turns a guest's connection into a link: hello, welcome, ready, in that order and each once.
 *
 *     dialled ──hello──▶ greeted ──welcome()──▶ setting up ──ready, taken──▶ ready
 *        └──────────── anything else, or the connection ends ────────────▶ closed
 */
import { FrameType } from "../../../shared/agent-protocol/frame.ts";
import { isToken } from "../../../shared/agent-protocol/host-proof.ts";
import { Link, type LinkOptions, type Stream, type Transport } from "../../../shared/agent-protocol/link.ts";
import {
  GENERATION,
  type Hello,
  OLDEST_GENERATION,
  type Ready,
  StreamErrorCode,
  type Welcome,
} from "../../../shared/agent-protocol/messages.ts";
import { within } from "../../core/concurrency/published.ts";
import type { OwnerName } from "../../core/loop/index.ts";
import { PausableDeadlines } from "./pausable-deadlines.ts";

/** Concurrent requests of the guest to the host: its connections to the outside, and a few more. */
const MAX_GUEST_STREAMS = 1024;
/** The host sends on one channel of a stream that the guest opened. */
const GUEST_CHANNELS = 1;
/** 256 connections with far ends that do not read. */
const MAX_GUEST_UNREAD_BYTES = 64 * 1024 * 1024;

/** Maximum of proofs in a hello: each is compared to each secret that the guest may have. */
const MAX_PROOFS = 2;

/** Handles a request of the guest, and ends the stream. */
export interface GuestRequests {
  (stream: Stream, request: unknown): void;
  /** Owner of the loop time of the guest's frames; the service if absent. */
  owner?: OwnerName;
}
export const NOTHING_TO_ASK: GuestRequests = (stream) =>
  stream.fail(StreamErrorCode.unknown_method, "no requests are accepted on this connection");

/** The agent's report once the guest is set up. */
export type GuestReady = Extract<Ready, { ok: true }>;

/** Vsock ports of a connection that the guest made. */
export interface DialledPorts {
  to: number;
  /** Source port; null if the guest's device does not expose it. */
  from: number | null;
}

export class GuestLink {
  readonly ports: DialledPorts;
  readonly #link: Link;
  readonly #hello = Promise.withResolvers<Hello>();
  readonly #ready = Promise.withResolvers<Ready>();
  #take: ((ready: GuestReady) => void) | null = null;
  readonly #closed = Promise.withResolvers<string>();
  readonly #valve: Valve;
  /** Pauses of the guest, for deadlines in its own time. */
  readonly standstill = new PausableDeadlines();
  #requests = NOTHING_TO_ASK;
  #heard = 0;
  #isLost = false;

  constructor(transport: Transport, valve: Valve, ports: DialledPorts, onFrame: LinkOptions["onFrame"] = () => {}) {
    this.#valve = valve;
    this.ports = ports;
    this.#hello.promise.catch(() => {});
    this.#ready.promise.catch(() => {});
    this.#link = new Link({
      side: "host",
      transport,
      maxPeerStreams: MAX_GUEST_STREAMS,
      peerChannels: GUEST_CHANNELS,
      maxPeerUnreadBytes: MAX_GUEST_UNREAD_BYTES,
      onOpen: (stream, request) => this.#requests(stream, request),
      onFrame,
      onHandshake: (type, body) => this.#onHandshake(type, body),
      onClosed: (reason) => {
        const error = new Error(`the guest's connection has ended: ${reason}`);
        this.#hello.reject(error);
        this.#ready.reject(error);
        this.#closed.resolve(reason);
        this.standstill.end();
      },
    });
  }

  /** Processes bytes, at most `mostFrames` frames; returns the number of bytes. */
  receive(bytes: Uint8Array, mostFrames?: number): number {
    return this.#link.receive(bytes, mostFrames);
  }

  close(reason: string): void {
    this.#link.close(reason);
  }

  /** The connection broke, or the guest ended it. */
  end(reason: string): void {
    if (!this.isClosed) this.#isLost = true;
    this.#link.close(reason);
  }

  /** Whether the connection ended without this side having closed it. */
  get isLost(): boolean {
    return this.#isLost;
  }

  /** Whether the agent has said hello, valid or not. */
  get hasSaidHello(): boolean {
    return this.#heard > 0;
  }

  /** Resolves with the reason once the connection has ended. */
  get closed(): Promise<string> {
    return this.#closed.promise;
  }

  /** Owner of the loop time of the link's frames. */
  get owner(): OwnerName {
    return this.#requests.owner ?? "host";
  }

  get isClosed(): boolean {
    return this.#link.closedReason !== null;
  }

  hello(deadlineMs: number): Promise<Hello> {
    return within(this.#hello.promise, deadlineMs, "the guest agent's hello");
  }

  /** The connection has proven to be the agent's, which may send requests from now on. */
  believe(requests = NOTHING_TO_ASK): void {
    this.#requests = requests;
    this.#valve.widen();
  }

  /**
   * Sets the guest up. Resolves with the agent's nonce and timings; rejects with the failure in the guest. `take` receives them first,
   * before any later message of the guest is processed; if it throws the connection ends.
   */
  async welcome(welcome: Welcome, deadlineMs: number, take: (ready: GuestReady) => void): Promise<GuestReady> {
    this.#take = take;
    this.#link.sendJson(FrameType.welcome, 0, welcome);
    const ready = await within(this.#ready.promise, deadlineMs, "setting up the guest");
    if (!ready.ok) throw new Error(`the guest could not be set up: ${ready.error}`);
    return ready;
  }

  /** Resolves when the agent has answered. */
  ping(deadlineMs: number): Promise<void> {
    return within(this.#link.ping(), deadlineMs, "the guest agent's answer");
  }

  /**
   * Holds all traffic if the guest's vsock device would otherwise be lost (the quirk lost_while_stopped), and resolves once nothing is on
   * its way to the guest. Rejects if the agent does not answer.
   */
  async hold(deadlineMs: number): Promise<void> {
    const answered = this.ping(deadlineMs);
    this.#valve.shut();
    this.standstill.begin();
    try {
      // When the ping is answered, all data sent before it has been read.
      await answered;
      this.#valve.stopReading();
    } catch (error) {
      this.release();
      throw error;
    }
  }

  /** The same immediately, for a guest that is already paused; data on its way may be lost with the device. */
  freeze(): void {
    this.#valve.shut();
    this.#valve.stopReading();
    this.standstill.begin();
  }

  /** Further cost of processing the guest's messages, in points of pace.ts. */
  charge(points: number): void {
    this.#valve.charge(points);
  }

  /** Releases all traffic, held data first. */
  release(): void {
    this.#valve.open();
    this.standstill.end();
  }

  open(request: { method: string }): Stream {
    return this.#link.open(request);
  }

  #onHandshake(type: number, body: unknown): void {
    if (type === FrameType.hello && this.#heard === 0) {
      this.#heard = 1;
      this.#hello.resolve(readHello(body));
    } else if (type === FrameType.ready && this.#heard === 1 && this.#take) {
      this.#heard = 2;
      const ready = readReady(body);
      try {
        if (ready.ok) this.#take(ready);
      } catch (error) {
        // The reason of the rejection, rather than the end of the connection that follows.
        this.#ready.reject(error);
        throw error;
      }
      this.#ready.resolve(ready);
    } else {
      throw new Error(`handshake frame ${type} out of order`);
    }
  }
}

/** Stops the flow of a connection without ending it. */
export interface Valve {
  /** The connection is the agent's: from now on it may send more than a hello. */
  widen(): void;
  /** The guest has spent this many points of its pace. */
  charge(points: number): void;
  /** Later writes are held back; earlier ones are still sent. */
  shut(): void;
  stopReading(): void;
  open(): void;
}

function readHello(body: unknown): Hello {
  const hello = body as Partial<Record<keyof Hello, unknown>>;
  const { generation, version, nonce, guest_cid, set_up, challenge, proofs, restores } = hello;
  if (
    typeof generation !== "number" ||
    typeof version !== "string" ||
    typeof nonce !== "string" ||
    typeof guest_cid !== "number" ||
    typeof set_up !== "boolean" ||
    !(challenge === undefined || isToken(challenge)) ||
    !(proofs === undefined || areProofs(proofs))
  ) {
    throw new Error("the hello is malformed");
  }
  if (generation > GENERATION || generation < OLDEST_GENERATION) {
    const known = `${OLDEST_GENERATION} to ${GENERATION}`;
    const age = generation > GENERATION ? "newer" : "too old";
    throw new Error(
      `its agent speaks generation ${generation} of the protocol, which is ${age}: this roomd speaks ${known}`,
    );
  }
  return {
    ...{ generation, version: version.slice(0, 64), nonce: nonce.slice(0, 64), guest_cid, set_up },
    ...(challenge === undefined ? {} : { challenge }),
    ...(proofs === undefined ? {} : { proofs }),
    ...(restores === true ? { restores } : {}),
  };
}

function areProofs(value: unknown): value is string[] {
  return Array.isArray(value) && value.length <= MAX_PROOFS && value.every(isToken);
}

function readReady(body: unknown): Ready {
  const ready = body as Partial<Record<"ok" | "error" | "nonce" | "before" | "stages_ms", unknown>>;
  if (ready.ok !== true) return { ok: false, error: String(ready.error).slice(0, 500) };
  const stages = Object.entries(Object(ready.stages_ms) as Record<string, unknown>).slice(0, 16);
  const { nonce, before } = ready;
  if (typeof nonce !== "string" || !(before === undefined || typeof before === "string")) {
    throw new Error("the ready is malformed");
  }
  return {
    ok: true,
    nonce: nonce.slice(0, 64),
    ...(before === undefined ? {} : { before: before.slice(0, 64) }),
    stages_ms: Object.fromEntries(
      stages.filter(
        (entry): entry is [string, number] => typeof entry[1] === "number" && /^[a-z_]{1,32}$/.test(entry[0]),
      ),
    ),
  };
}
