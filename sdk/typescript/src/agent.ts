/** An agent of a room: messages, requests and barriers, usable inside and outside of a sandbox. */
import type { Client, Result } from "./client.ts";
import { inTime, unlessAborted } from "./deadline.ts";
import { ProblemError, TimeoutError } from "./errors.ts";
import type { AgentSendRequest, Message, MessageReceipt, MessageToSend } from "./generated/schemas.ts";
import { nameOf } from "./names.ts";
import { type CallOptions, longestWaitOf } from "./transport.ts";

/** Longest wait of one call; longer waits take several calls. */
const WAIT_MS = 50_000;
const DEFAULT_WAIT_MS = 300_000;
/** Time for the transfer of an answer, in addition to the wait. */
const WAY_MS = 10_000;

/** Options of a message, in addition to its destination and payload. */
export interface MessageOptions {
  /** "event" by default. */
  kind?: "event" | "request" | "response";
  /** Id of the message, unique in the room: a repeated id is not sent again. */
  messageId?: string;
  /** Metadata in addition to the payload, such as a trace context. */
  headers?: Record<string, string>;
  /** Whether the message is redelivered until the recipient acknowledges it. */
  ackRequired?: boolean;
  /** Time to live in ms: an unread message expires after this time. */
  ttlMs?: number;
}

/** Options of `send` and `request`. */
export interface SendOptions extends MessageOptions, CallOptions {}

/** A message of `sendMany`. */
export interface Outgoing extends MessageOptions {
  /** Its recipients. */
  destination: Destination;
  /** Its content: any JSON value. */
  payload: unknown;
}

/** Recipients of a message: one agent, several agents, all other agents ("*"), or the subscribers of a topic. */
export type Destination = string | readonly string[] | { topic: string };

/** Filters and time limit of `wait`. */
export interface WaitOptions extends Pick<CallOptions, "signal"> {
  /** Longest wait in ms; 5 minutes by default. */
  waitMs?: number;
  /** Alias of `waitMs`. */
  timeoutMs?: number;
  /** Only messages of this topic. */
  topic?: string;
  /** Only messages of this kind. */
  kind?: "event" | "request" | "response";
  /** Only messages of this sender. */
  source?: string;
}

/** Options of `barrier`. */
export interface BarrierOptions extends Pick<CallOptions, "signal"> {
  /** Number of agents that must arrive. The call that opens the barrier specifies either this or `participants`. */
  parties?: number;
  /** Names of the agents that must arrive. */
  participants?: readonly string[];
  /** Longest wait in ms; 5 minutes by default. */
  waitMs?: number;
  /** Alias of `waitMs`. */
  timeoutMs?: number;
}

/** Agents by client, room and name, until their room ends. */
const known = new WeakMap<Client, Map<string, Map<string, Agent>>>();

/** A message with a payload of a known type. */
export type MessageOf<Payload> = Omit<Message, "payload"> & { payload: Payload };

/** An agent of a room. It needs no sandbox. */
export class Agent {
  /** Name of the agent, unique in the room. */
  readonly id: string;
  readonly #client: Client;
  readonly #room: string;
  /** Read positions of the inbox, per filter: messages that one filter skips stay unread for the others. */
  readonly #places = new Map<string, number>();
  /** Serializes waits, so that no two of them receive the same message. */
  #waiting: Promise<unknown> = Promise.resolve();

  /** The agent of this name. The same object is returned each time: it holds the read positions of the inbox. */
  static of(client: Client, room: string, id: string): Agent {
    const ofClient = known.get(client) ?? new Map<string, Map<string, Agent>>();
    known.set(client, ofClient);
    const ofRoom = ofClient.get(room) ?? new Map<string, Agent>();
    ofClient.set(room, ofRoom);
    const agent = ofRoom.get(id) ?? new Agent(client, room, id);
    ofRoom.set(id, agent);
    return agent;
  }

  /** Drops the read positions of a room that has ended; a later room may have the same name. */
  static forget(client: Client, room: string): void {
    known.get(client)?.delete(room);
  }

  private constructor(client: Client, room: string, id: string) {
    this.id = id;
    this.#client = client;
    this.#room = room;
  }

  /** Sends a message. Resolves once it is stored durably; it is never dropped. */
  send(destination: Destination, payload: unknown, options: SendOptions = {}): Promise<Result<"agent_send">> {
    const message = this.#message(destination, payload, options, nameOf(options.idempotencyKey));
    return this.#client.call("agent_send", { room_id: this.#room, ...message }, withoutHeaders(options));
  }

  /**
   * Sends up to 256 messages in one call, in this order, all or none. It costs the service a fraction of separate calls. Resolves once
   * they are stored durably.
   */
  async sendMany(messages: readonly Outgoing[], options: CallOptions = {}): Promise<MessageReceipt[]> {
    const name = nameOf(options.idempotencyKey);
    const sent = messages.map(({ destination, payload, ...more }, index) =>
      this.#message(destination, payload, more, `${name}-${index}`),
    );
    return (await this.#client.call("message_send_many", { room_id: this.#room, messages: sent }, options)).messages;
  }

  /** Sends a request to one agent and returns its reply. Throws TimeoutError if none arrives within `waitMs`, 5 minutes by default. */
  async request<Payload = unknown>(
    destination: string,
    payload: unknown,
    { waitMs, timeoutMs = waitMs ?? DEFAULT_WAIT_MS, ...options }: SendOptions = {},
  ): Promise<MessageOf<Payload>> {
    const message = this.#message(destination, payload, options, nameOf(options.idempotencyKey));
    const deadline = performance.now() + timeoutMs;
    const wanted = { room_id: this.#room, ...message, wait_reply: true };
    let each = withoutHeaders(options);
    let left = timeoutMs;
    do {
      try {
        const input = { ...wanted, timeout_ms: Math.max(1, waitOf(left)) };
        const { reply } = await this.#client.call("agent_send", input, { ...each, timeoutMs: left + WAY_MS });
        if (reply) return reply as MessageOf<Payload>;
      } catch (error) {
        if (!isCode(error, "reply_timeout")) throw error;
      }
      // The message id identifies the retry. The call itself differs, since its remaining wait does.
      const { idempotencyKey: _, ...again } = each;
      each = again;
      left = deadline - performance.now();
    } while (left > 0);
    throw new TimeoutError(`${destination} has not replied within ${timeoutMs} ms.`);
  }

  /**
   * Waits for the next unread message. Messages returned earlier count as read. Returns null if none arrives within `waitMs`. Each filter
   * has its own read position: messages read with one filter stay unread for the others.
   */
  wait<Payload = unknown>(options: WaitOptions = {}): Promise<MessageOf<Payload> | null> {
    const deadline = performance.now() + (longestWaitOf(options) ?? DEFAULT_WAIT_MS);
    const before = this.#waiting;
    const next = hasTurn(before, deadline, options.signal).then((has) => (has ? this.#next(deadline, options) : null));
    // A waiter that is aborted before its turn does not affect the next one.
    this.#waiting = Promise.allSettled([before, next]);
    return next as Promise<MessageOf<Payload> | null>;
  }

  async #next(
    deadline: number,
    { waitMs: _wait, timeoutMs: _, signal, ...filter }: WaitOptions,
  ): Promise<Message | null> {
    const name = JSON.stringify([filter.topic, filter.kind, filter.source]);
    for (;;) {
      const after = this.#places.get(name);
      const place = after === undefined ? {} : { after };
      const left = deadline - performance.now();
      const input = { room_id: this.#room, agent_id: this.id, limit: 1, wait_ms: waitOf(left), ...place, ...filter };
      const { items, next_after } = await this.#client.call("agent_wait", input, waiting(left, signal));
      if (items[0]) {
        this.#places.set(name, next_after);
        return items[0];
      }
      if (performance.now() >= deadline) return null;
    }
  }

  /** Yields every message as it arrives, until the signal aborts. */
  async *messages<Payload = unknown>(
    options: Omit<WaitOptions, "waitMs" | "timeoutMs"> = {},
  ): AsyncGenerator<MessageOf<Payload>> {
    for (;;) {
      const message = await this.wait<Payload>(options);
      if (message) yield message;
    }
  }

  /** Replies to a message, which also acknowledges it. */
  async reply(
    message: Pick<Message, "message_id"> | string,
    payload: unknown,
    options: CallOptions = {},
  ): Promise<void> {
    const input = { room_id: this.#room, message_id: idOf(message), source: this.id, payload };
    await this.#client.call("message_reply", input as never, options);
  }

  /** Acknowledges a message, so that it is not redelivered. */
  async ack(message: Pick<Message, "message_id"> | string, options: CallOptions = {}): Promise<void> {
    const input = { room_id: this.#room, message_id: idOf(message), agent_id: this.id };
    await this.#client.call("message_ack", input, options);
  }

  /** Replaces the subscriptions of the agent. In a topic pattern `*` matches one word, and `>` at the end any number of words. */
  async subscribe(topics: readonly string[], options: CallOptions = {}): Promise<void> {
    await this.#client.call(
      "agent_subscribe",
      { room_id: this.#room, agent_id: this.id, topics: [...topics] },
      options,
    );
  }

  /** Arrives at a barrier and waits until all have arrived. Throws TimeoutError after `waitMs`, 5 minutes by default. */
  async barrier(
    id: string,
    { parties, participants, waitMs, timeoutMs = waitMs ?? DEFAULT_WAIT_MS, signal }: BarrierOptions = {},
  ): Promise<Result<"barrier_arrive">> {
    const deadline = performance.now() + timeoutMs;
    const arrival = {
      room_id: this.#room,
      barrier_id: id,
      agent_id: this.id,
      ...(parties === undefined ? {} : { parties }),
      ...(participants === undefined ? {} : { participants: [...participants] }),
    };
    // The current generation, so that its release is not missed between two calls.
    const arrived = await this.#client.call(
      "barrier_arrive",
      { ...arrival, timeout_ms: 0 },
      waiting(timeoutMs, signal),
    );
    if (arrived.state === "released") return arrived;
    const { generation } = arrived;
    for (;;) {
      const left = deadline - performance.now();
      try {
        const input = { ...arrival, generation, timeout_ms: waitOf(left) };
        const standing = await this.#client.call("barrier_arrive", input, waiting(left, signal));
        if (standing.state === "released") return standing;
      } catch (error) {
        if (!isCode(error, "barrier_timeout")) throw error;
      }
      if (performance.now() >= deadline)
        throw new TimeoutError(`Not all agents have arrived at ${id} within ${timeoutMs} ms.`);
    }
  }

  #message(
    destination: Destination,
    payload: unknown,
    options: MessageOptions,
    name: string,
  ): AgentSendRequest & MessageToSend {
    const { kind, headers, ackRequired, ttlMs, messageId = name } = options;
    return {
      source: this.id,
      ...destinationOf(destination),
      payload,
      message_id: messageId,
      ...(kind === undefined ? {} : { kind }),
      ...(headers === undefined ? {} : { headers }),
      ...(ackRequired === undefined ? {} : { ack_required: ackRequired }),
      ...(ttlMs === undefined ? {} : { ttl_ms: ttlMs }),
    } as AgentSendRequest & MessageToSend;
  }
}

/** Wait time of one call, within the remaining time. */
const waitOf = (leftMs: number) => Math.max(0, Math.round(Math.min(WAIT_MS, leftMs)));

/** The options of a waiting call. */
function waiting(leftMs: number, signal: AbortSignal | undefined): CallOptions {
  return { timeoutMs: Math.max(0, leftMs) + WAY_MS, ...(signal ? { signal } : {}) };
}

/** Whether `before` settles within the time. Throws the signal's reason. */
async function hasTurn(before: Promise<unknown>, deadline: number, signal: AbortSignal | undefined): Promise<boolean> {
  const limits = { timeoutMs: deadline - performance.now(), ...(signal ? { signal } : {}) };
  try {
    await inTime(limits, "Earlier calls are still waiting.", (given) => unlessAborted(before, given.signal));
    return true;
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof TimeoutError) return false;
    throw error;
  }
}

function destinationOf(destination: Destination) {
  if (typeof destination === "string") return { destination };
  return "topic" in destination ? { topic: destination.topic } : { destinations: [...destination] };
}

/** The call's options, without the message's headers. */
function withoutHeaders({ signal, idempotencyKey, waitMs, timeoutMs = waitMs, retry }: SendOptions): CallOptions {
  return {
    ...(signal ? { signal } : {}),
    ...(retry ? { retry } : {}),
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  };
}

const idOf = (message: Pick<Message, "message_id"> | string) =>
  typeof message === "string" ? message : message.message_id;
const isCode = (error: unknown, code: string) => error instanceof ProblemError && error.code === code;
