/**
 * One reader's timeline over all hosts: a stream from each, one piece of each at a time, emitted in the order of arrival. Nothing is
 * requested ahead of the reader. State of each other host:
 *
 *     requested ──▶ emitted, as long as it answers ──it ends, breaks off, or times out──▶ silent, reported once
 *       ▲                                                                                     │
 *       └───────────────────────── after a pause, from its position ◀──────────────────────────┘
 */
import { backoffMs } from "../../../shared/backoff.ts";
import type { Host } from "../../cluster/directory.ts";
import type { EventsReply, StreamEvent } from "../../core/call/operation.ts";
import { pause } from "../../core/clock.ts";
import { within } from "../../core/concurrency/published.ts";
import { ServiceError } from "../../core/service-error.ts";
import { chainNameOf, type Position } from "./places.ts";
import { warningPing } from "./words.ts";

/** Pauses before a silent host is retried. */
const AGAIN_MS = { first: 500, most: 10_000 };
const SILENT_MS = 25_000;
const GONE = 410;

/** Response of another host: its status, and its events if that is 200. */
export interface HostResponse {
  status: number;
  events?: EventsReply;
}

export interface TimelineOptions {
  /** This host's events; their starting position is already known. */
  own: EventsReply;
  ownName: string;
  position: Position;
  /** Whether to wait for future events. */
  follow: boolean;
  slowMs: number;
  /** A host without a byte for this long is silent; it pings every 15 seconds. */
  silentMs?: number;
  others(): Host[];
  /** The events after a position; undefined: it has none yet. The first event has the position at which they start. */
  ask(host: Host, place: number | undefined, until: AbortSignal, isFirst: boolean): Promise<HostResponse>;
  /** Waits a limited time for a host's first response. Null: it timed out. Never rejects. */
  patience(hostId: string, pending: Promise<true>): Promise<true | null>;
  cursorOf(position: Position): string;
  /** Called when the host's events are unavailable for now. */
  lost(hostId: string, error: unknown): void;
  cut(): void;
  ended(): void;
}

interface Piece {
  /** Null: they are no records. */
  name: string | null;
  events: readonly StreamEvent[];
  /** All ends behind it. */
  isLast: boolean;
  taken(): void;
}

interface Member {
  host: Host;
  name: string;
  /** Aborted if it is no member any more, or the reader is gone. */
  left: AbortController;
  begun: PromiseWithResolvers<true>;
  isSilent: boolean;
  /** It was a member when the reader connected, and this is its first request. */
  isFirst: boolean;
}

/** A host has purged the events that come next. */
class HistoryGone extends Error {}

export class Timeline {
  readonly #options: TimelineOptions;
  readonly #position: Position;
  readonly #pieces: Piece[] = [];
  /** Members by the names of their chains. */
  readonly #members = new Map<string, Member>();
  readonly #over = new AbortController();
  /** Streams that may still emit events. */
  #open = 0;
  #isGone = false;
  #wake = Promise.withResolvers<void>();
  readonly reply: EventsReply;

  constructor(options: TimelineOptions) {
    this.#options = options;
    const { places, since } = options.position;
    this.#position = { places: { ...places }, since };
    const cut = () => {
      options.cut();
      this.end();
    };
    this.reply = { events: this.#told(), cancel: () => this.end(), slow: { ms: options.slowMs, cut } };
  }

  /** Resolves when each host has started or timed out. Throws history_gone. */
  async start(): Promise<void> {
    const { others, patience, follow } = this.#options;
    const members = others().map((host) => this.#enter(host, true));
    const starts = await Promise.all(members.map(({ host, begun }) => patience(host.host_id, begun.promise)));
    if (this.#isGone) {
      this.end();
      throw new ServiceError("history_gone", { detail: "A host no longer keeps the events that come next." });
    }
    // Without `follow` the reader waits for the end of all hosts, and a silent one is reported there.
    for (const [index, member] of members.entries()) if (follow && starts[index] === null) this.#silent(member);
    void this.#tellOwn();
  }

  /** Updates the members after hosts joined or were removed. */
  look(hosts: readonly Host[]): void {
    if (this.#over.signal.aborted || !this.#options.follow) return;
    const named = new Map(hosts.map((host) => [chainNameOf(host), host]));
    for (const [name, { left }] of this.#members) {
      if (named.has(name)) continue;
      left.abort();
      this.#members.delete(name);
      delete this.#position.places[name];
    }
    for (const [name, host] of named) if (!this.#members.has(name)) this.#enter(host, false);
  }

  end(): void {
    if (this.#over.signal.aborted) return;
    this.#over.abort();
    this.#options.own.cancel();
    for (const { left } of this.#members.values()) left.abort();
    // Release the streams that wait for the reader.
    for (const { taken } of this.#pieces.splice(0)) taken();
    this.#options.ended();
    this.#wake.resolve();
  }

  #enter(host: Host, isFirst: boolean): Member {
    const begun = Promise.withResolvers<true>();
    begun.promise.catch(() => {});
    const member: Member = {
      ...{ host, name: chainNameOf(host), left: new AbortController() },
      ...{ begun, isSilent: false, isFirst },
    };
    this.#members.set(member.name, member);
    this.#open++;
    void this.#keep(member).finally(() => this.#close());
    return member;
  }

  /** Never rejects. */
  async #keep(member: Member): Promise<void> {
    const { signal } = member.left;
    for (let attempt = 0; !signal.aborted; attempt++) {
      try {
        await this.#tellOf(member);
        if (!this.#options.follow) return;
      } catch (error) {
        if (error instanceof HistoryGone) return this.#gone(member);
        member.begun.reject(error);
        if (!signal.aborted) this.#options.lost(member.host.host_id, error);
      }
      if (signal.aborted) return;
      // The host had answered since the last pause.
      if (!member.isSilent) attempt = 0;
      this.#silent(member);
      if (!this.#options.follow) return;
      await pause(backoffMs(AGAIN_MS, attempt), signal);
    }
  }

  /** Resolves at the end of its events; throws if they break off. */
  async #tellOf(member: Member): Promise<void> {
    const { name, left } = member;
    const { silentMs = SILENT_MS } = this.#options;
    const reply = await this.#ask(member);
    const cancel = () => reply.cancel();
    left.signal.addEventListener("abort", cancel, { once: true });
    try {
      while (!left.signal.aborted) {
        const { done, value } = await within(reply.events.next(), silentMs, "events of a host");
        if (done) return;
        const { records, place, failure } = read(value);
        if (place !== null && !left.signal.aborted) this.#position.places[name] = place;
        if (failure === null) {
          member.isSilent = false;
          member.begun.resolve(true);
        }
        if (records.length > 0) await this.#give({ name, events: records });
        if (failure === "history_gone") throw new HistoryGone();
        if (failure !== null) throw new Error(`a host's events ended: ${failure}`);
      }
    } finally {
      left.signal.removeEventListener("abort", cancel);
      reply.cancel();
    }
  }

  /** Throws if it does not answer with its events. */
  async #ask(member: Member): Promise<EventsReply> {
    const { host, name, left, isFirst } = member;
    member.isFirst = false;
    // The host's connection parameters may have changed.
    const known = this.#options.others().find((each) => chainNameOf(each) === name) ?? host;
    const { status, events } = await this.#options.ask(known, this.#position.places[name], left.signal, isFirst);
    if (status === GONE) throw new HistoryGone();
    if (status !== 200 || !events) throw new Error(`${host.host_id} answered ${status}`);
    if (left.signal.aborted) events.cancel();
    return events;
  }

  /** The end of this host's stream ends the whole timeline: its key, its organization or the daemon ended. Never rejects. */
  async #tellOwn(): Promise<void> {
    const { own, ownName, follow } = this.#options;
    this.#open++;
    for await (const events of own.events) {
      const { records, failure } = read(events);
      if (records.length > 0) await this.#give({ name: ownName, events: records });
      if (failure !== null) await this.#give({ events: [errorOf(failure)], isLast: true });
    }
    if (follow) await this.#give({ isLast: true });
    this.#close();
  }

  #gone({ begun }: Member): void {
    this.#isGone = true;
    begun.resolve(true);
    void this.#give({ events: [errorOf("history_gone")], isLast: true });
  }

  #silent(member: Member): void {
    if (member.isSilent) return;
    member.isSilent = true;
    const missing = this.#options.follow ? "its events follow once it does." : "its events are missing.";
    void this.#give({ events: [warningPing([member.host.host_id], missing)] });
  }

  /** Resolves when it has been read, or the reader is gone. */
  #give({ name = null, events = [], isLast = false }: Partial<Piece>): Promise<void> {
    if (this.#over.signal.aborted) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#pieces.push({ name, events, isLast, taken: resolve });
    this.#wake.resolve();
    return promise;
  }

  #close(): void {
    this.#open--;
    this.#wake.resolve();
  }

  async *#told(): AsyncGenerator<readonly StreamEvent[]> {
    try {
      while (!this.#over.signal.aborted) {
        const piece = this.#pieces.shift();
        if (piece) {
          const events = this.#withCursors(piece);
          // The position is updated: its host may be read again.
          piece.taken();
          if (events.length > 0) yield events;
          if (piece.isLast) return;
        } else if (this.#open === 0) return;
        else {
          await this.#wake.promise;
          this.#wake = Promise.withResolvers<void>();
        }
      }
    } finally {
      this.end();
    }
  }

  #withCursors({ name, events }: Piece): readonly StreamEvent[] {
    if (name === null) return events;
    return events.map(({ data }) => {
      this.#position.places[name] = (data as Shape).seq as number;
      const cursor = this.#options.cursorOf(this.#position);
      return { id: cursor, data: { ...data, cursor } };
    });
  }
}

interface Shape {
  type?: string;
  code?: string;
  seq?: unknown;
}

/** Content of a host's events: records, the position at which they start, or the reason why they end. */
function read(events: readonly StreamEvent[]) {
  const records: StreamEvent[] = [];
  let place: number | null = null;
  let failure: string | null = null;
  for (const event of events) {
    const { type, code, seq } = event.data as Shape;
    if (type === "place") place = Number(seq);
    else if (type === "error") failure = code ?? "internal";
    else if (type === undefined) records.push(event);
  }
  return { records, place, failure };
}

const errorOf = (code: string): StreamEvent => ({ id: null, data: { type: "error", code } });
