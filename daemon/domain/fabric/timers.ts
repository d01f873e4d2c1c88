/**
 * Time-based changes of messages: a message that needs an ack is redelivered, a limited number of times, and then is undeliverable; a
 * message with a ttl expires. One timer serves all, set to the earliest due time.
 */
import { REDELIVERIES } from "../../../shared/api/fabric.ts";
import type { RoomUid } from "../../../shared/ids.ts";
import { startTimer, stopTimer, wallMs } from "../../core/clock.ts";
import type { Notifier } from "../../core/concurrency/notifier.ts";
import type { Log } from "../../core/log.ts";
import { describeError } from "../../core/service-error.ts";
import type { Queries } from "../../db/client.ts";
import { roomOf } from "../../db/room-rows.ts";
import type { Database } from "../../db/transact.ts";
import { inboxBell } from "./bells.ts";
import { type DeliveryChange, type DueDelivery, dueDeliveries, nextDue, setDelivery } from "./store.ts";

/** Maximum number of deliveries changed in one commit: these take 2 ms. */
const MAX_AT_ONCE = 256;
/** Delay after a failure, and maximum delay in general. */
const LONGEST_MS = 60_000;

interface DueDeps {
  database: Database;
  bells: Notifier;
  log: Log;
  /** Called when a message is back in the agent's inbox. */
  delivered(roomUid: RoomUid, agentId: string): void;
}

export class MessageTimers {
  readonly #database: Database;
  readonly #bells: Notifier;
  readonly #delivered: DueDeps["delivered"];
  readonly #log: Log;
  #timer: Timer | undefined;
  #atMs = Number.POSITIVE_INFINITY;
  #stopped = false;

  constructor({ database, bells, log, delivered }: DueDeps) {
    this.#database = database;
    this.#bells = bells;
    this.#log = log;
    this.#delivered = delivered;
  }

  /** A timer is due at this time, in Unix milliseconds. */
  expectAt(ms: number): void {
    if (this.#stopped || ms >= this.#atMs) return;
    this.#atMs = ms;
    stopTimer(this.#timer);
    this.#timer = startTimer(() => void this.#run(), Math.max(0, Math.min(ms - wallMs(), LONGEST_MS)));
  }

  /** Schedules deliveries that became due while no daemon was running, and later ones. */
  start(): void {
    this.expectAt(wallMs());
  }

  stop(): void {
    this.#stopped = true;
    stopTimer(this.#timer);
  }

  async #run(): Promise<void> {
    this.#atMs = Number.POSITIVE_INFINITY;
    try {
      const back = await this.#database.commit((queries) => settleDue(queries, wallMs()), false);
      for (const { room_uid, agent_id } of back) {
        this.#bells.ring(room_uid, inboxBell(agent_id));
        this.#delivered(room_uid, agent_id);
      }
      const next = nextDue(this.#database.queries);
      if (next !== null) this.expectAt(next);
    } catch (error) {
      this.#log.error("failed to process due messages", { error: describeError(error) });
      this.expectAt(wallMs() + LONGEST_MS);
    }
  }
}

/** Within a transaction; returns the deliveries that are back in their inboxes. */
function settleDue(queries: Queries, nowMs: number): { room_uid: RoomUid; agent_id: string }[] {
  const due = dueDeliveries(queries, nowMs, MAX_AT_ONCE);
  const changes = due.map((delivery) => ({ delivery, change: nextOf(delivery, nowMs) }));
  for (const { delivery, change } of changes) setDelivery(queries, delivery, change);
  return changes.flatMap(({ delivery: { room_uid: rows, agent_id }, change }) => {
    const room_uid = change.state === "queued" ? roomOf(queries, rows) : null;
    return room_uid === null ? [] : [{ room_uid, agent_id }];
  });
}

function nextOf({ attempts, expires_at_ms }: DueDelivery, nowMs: number): DeliveryChange {
  if (expires_at_ms !== null && expires_at_ms <= nowMs) return { state: "expired", due_at_ms: null, awaited: false };
  if (attempts > REDELIVERIES) return { state: "undeliverable", due_at_ms: null };
  return { state: "queued", due_at_ms: expires_at_ms };
}
