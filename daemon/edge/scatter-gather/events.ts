/**
 * The timeline of an organization over all hosts: the entry host requests the timelines of the others with the caller's credentials, and
 * emits the events of each in that host's order. A cursor has a position for each chain, and is valid on every host.
 *
 *     after CURSOR ──▶ a position for each chain ──▶ this host's timeline, and each other's (timeline.ts) ──▶ one stream
 */
import type { Operation } from "../../../shared/api/contract.ts";
import type { Cluster } from "../../cluster/postgres.ts";
import { makeCursor, readCursor } from "../../core/call/cursor.ts";
import { type Done, NO_TRANSFER } from "../../core/call/operation.ts";
import { wallMs } from "../../core/clock.ts";
import type { Log } from "../../core/log.ts";
import { type Chains, cursorAfterEvent, notAnEvent, SLOW_READER, seqOfEvent } from "../../domain/audit/index.ts";
import { AdaptiveTimeout } from "../hosts/adaptive-timeout.ts";
import type { Input, Own } from "../pipeline/placement.ts";
import { type Asking, ledBy, queryOf } from "./asking.ts";
import { chainNameOf, cursorOf, type Position, positionIn } from "./places.ts";
import { Timeline } from "./timeline.ts";

export interface EventsDeps {
  /** The name of this host. */
  own: string;
  directory: Pick<Cluster, "others" | "host" | "onChange" | "hosts">;
  chains: Pick<Chains, "head" | "upTo">;
  /** A reader that leaves sent data unread for this long is disconnected. */
  slowReaderMs: number;
  log: Log;
}

/** A reader and its position. */
export interface Reading {
  org_id: string;
  last_event_id: string | null;
  /** The client's. */
  signal: AbortSignal;
}

/** How long to wait for a host before the stream starts without it. */
const PATIENCE_MS = 1000;
/** Tolerance for clock differences, and because a record has the start time of its call. */
const EARLIER_MS = 60_000;
/** Limit of chains of hosts that this host does not know yet, or that were removed and have joined again. */
const MAX_UNKNOWN = 8;
/** Position in every timeline before the first retained event. */
const BEGINNING = "0";

export class GatheredEvents {
  readonly #deps: EventsDeps;
  /** Separate from other calls: a host that is slow with streams may still answer short requests. */
  readonly #patience = new AdaptiveTimeout();
  /** Timelines that are being followed. */
  readonly #open = new Set<Timeline>();

  constructor(deps: EventsDeps) {
    this.#deps = deps;
    deps.directory.onChange(() => {
      if (this.#open.size === 0) return;
      const hosts = deps.directory.others();
      for (const timeline of this.#open) timeline.look(hosts);
    });
  }

  /** Throws invalid_cursor, and history_gone if a host has purged the events that come next. */
  async ofAll(operation: Operation, ask: Asking, reading: Reading, input: Input, own: Own): Promise<Done<Operation>> {
    const { directory, log } = this.#deps;
    const { org_id, signal } = reading;
    const given = cursorIn(reading, input);
    const known = given === null ? null : this.#positionIn(org_id, given);
    const position = known ?? { places: {}, since: wallMs() };
    const ownName = this.#ownName();
    const ownSeq = this.#seqOf(org_id, known ? (position.places[ownName] ?? { since: position.since }) : null);
    const done = await own({ ...input, after: cursorAfterEvent(org_id, ownSeq) }, NO_TRANSFER);
    if (!done.events) return done;
    const timeline: Timeline = new Timeline({
      ...{ own: done.events, ownName, follow: input.follow !== false, slowMs: this.#deps.slowReaderMs },
      position: { ...position, places: { ...position.places, [ownName]: ownSeq } },
      others: () => directory.others(),
      ask: (host, place, until, isFirst) => {
        const isNow = known === null && isFirst;
        const after = isNow ? undefined : afterOf(org_id, place, position.since);
        return ask(host, queryOf(operation, { ...input, after }), until, "lines");
      },
      patience: (hostId, pending) => this.#patience.until(hostId, pending, PATIENCE_MS),
      cursorOf: (at) => cursorOf(kindOf(org_id), at),
      lost: (host, error) => log.info("failed to read events of another host", { host, error: String(error) }),
      cut: () => log.info(SLOW_READER.events, { org_id }),
      ended: () => {
        this.#open.delete(timeline);
        signal.removeEventListener("abort", end);
      },
    });
    const end = () => timeline.end();
    this.#open.add(timeline);
    signal.addEventListener("abort", end, { once: true });
    if (signal.aborted) end();
    await timeline.start();
    return { ...done, events: timeline.reply };
  }

  /** For another host that gathers: only this host's chain, preceded by the position at which it starts. Throws as the verb does. */
  async forHost(reading: Reading, input: Input, own: Own): Promise<Done<Operation>> {
    const { org_id } = reading;
    const given = cursorIn(reading, input);
    const moment = given === null ? null : momentIn(org_id, given);
    const seq = this.#seqOf(
      org_id,
      given === null ? null : moment === null ? seqOfEvent(org_id, given) : { since: moment },
    );
    const done = await own({ ...input, after: cursorAfterEvent(org_id, seq) }, NO_TRANSFER);
    return done.events ? { ...done, events: ledBy({ id: null, data: { type: "place", seq } }, done.events) } : done;
  }

  /** The last record of this host's chain that the reader has: the given one, the last before a moment, or the head. */
  #seqOf(orgId: string, place: number | { since: number | null } | null): number {
    const { chains } = this.#deps;
    const head = chains.head(orgId);
    if (place === null) return head;
    // If this host was restored from an older copy, `place` may exceed its head: continue with the records written since.
    if (typeof place === "number") return Math.min(place, head);
    return place.since === null ? 0 : chains.upTo(orgId, new Date(place.since - EARLIER_MS).toISOString());
  }

  /** Throws invalid_cursor. */
  #positionIn(orgId: string, cursor: string): Position {
    if (cursor === BEGINNING) return { places: {}, since: null };
    try {
      return this.#known(positionIn(kindOf(orgId), cursor));
    } catch (cause) {
      const seq = orNull(() => seqOfEvent(orgId, cursor));
      if (seq === null) throw notAnEvent(cause);
      // The cursor is from the time at which the first of these hosts was alone.
      const [first] = this.#deps.directory.hosts().sort((a, b) => (a.joined_at < b.joined_at ? -1 : 1));
      return { places: first ? { [chainNameOf(first)]: seq } : {}, since: null };
    }
  }

  /** Omits chains of removed hosts; a host that has just joined may not be known here yet. */
  #known({ places, since }: Position): Position {
    const hosts = this.#deps.directory.hosts().map((host) => [chainNameOf(host), host.state === "gone"] as const);
    const isGone = new Map(hosts);
    const unknown = Object.keys(places).filter((name) => !isGone.has(name));
    const isKept = (name: string) => isGone.get(name) === false || (!isGone.has(name) && unknown.length <= MAX_UNKNOWN);
    return { places: Object.fromEntries(Object.entries(places).filter(([name]) => isKept(name))), since };
  }

  #ownName(): string {
    const { own, directory } = this.#deps;
    const row = directory.host(own);
    return chainNameOf(row ?? { host_id: own, joined_at: "" });
  }
}

/** A client that reconnects repeats its original URL; its header has the newer position. */
function cursorIn({ last_event_id }: Reading, { after }: Input): string | null {
  if (last_event_id) return last_event_id;
  return after === undefined ? null : String(after);
}

const kindOf = (orgId: string) => `events of hosts ${orgId}`;
/** Kind of a cursor that is a time, between two hosts. */
const momentKind = (orgId: string) => `events since ${orgId}`;

/** Cursor for another host: after a position or, if it has none, from a moment on. */
function afterOf(orgId: string, place: number | undefined, since: number | null): string {
  if (place !== undefined) return cursorAfterEvent(orgId, place);
  return since === null ? BEGINNING : makeCursor(momentKind(orgId), String(since));
}

/** Null: it is another cursor. */
function momentIn(orgId: string, cursor: string): number | null {
  const text = orNull(() => readCursor(momentKind(orgId), cursor));
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : null;
}

function orNull<T>(read: () => T): T | null {
  try {
    return read();
  } catch {
    return null;
  }
}
