/** Resolves the recipients of the messages of one transaction, each as if its predecessors were already sent. */
import { EVERYONE, MAX_BATCH_RECIPIENTS } from "../../../shared/api/fabric.ts";
import type { RoomUid } from "../../../shared/ids.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Agents } from "../agents/index.ts";
import type { Address } from "./address.ts";

export class Batch {
  readonly #agents: Agents;
  readonly #roomUid: RoomUid;
  /** An agent that has sent in this transaction takes part by that. */
  readonly #senders = new Set<string>();
  readonly #subscribers = new Map<string, string[]>();
  #everyone: string[] | null = null;
  #recipients = 0;

  constructor(agents: Agents, roomUid: RoomUid) {
    this.#agents = agents;
    this.#roomUid = roomUid;
  }

  /** Notes a message of `source`; returns whether it is the agent's first in this batch. */
  sends(source: string): boolean {
    if (this.#senders.has(source)) return false;
    this.#senders.add(source);
    return true;
  }

  /** Throws agent_not_found, agent_unavailable, and validation_failed if the messages have too many recipients together. */
  recipientsOf(message: Address & { source: string }): string[] {
    const recipients = this.#find(message);
    // A first message is exempt from the batch limit.
    if (this.#recipients > 0 && this.#recipients + recipients.length > MAX_BATCH_RECIPIENTS) throw tooMany();
    this.#recipients += recipients.length;
    return recipients;
  }

  #find({ source, destination, destinations, topic }: Address & { source: string }): string[] {
    if (topic !== null) return this.#subscribersOf(topic).filter((agentId) => agentId !== source);
    if (destination === EVERYONE) return this.#all().filter((agentId) => agentId !== source);
    const named = destinations ?? (destination === null ? [] : [destination]);
    for (const agentId of named) {
      if (agentId !== source && !this.#senders.has(agentId)) this.#agents.require(this.#roomUid, agentId);
    }
    return named;
  }

  #subscribersOf(topic: string): string[] {
    const found = this.#subscribers.get(topic) ?? this.#agents.subscribers(this.#roomUid, topic);
    this.#subscribers.set(topic, found);
    return found;
  }

  #all(): string[] {
    this.#everyone ??= this.#agents.all(this.#roomUid);
    const known = this.#everyone;
    const strangers = [...this.#senders].filter((agentId) => !known.includes(agentId));
    return strangers.length === 0 ? known : [...known, ...strangers].sort();
  }
}

function tooMany(): ServiceError {
  const message = `The messages of a batch have at most ${MAX_BATCH_RECIPIENTS} recipients together.`;
  return new ServiceError("validation_failed", {
    detail: message,
    errors: [{ field: "messages", code: "too_many_recipients", message }],
    hint: "Send them in several calls.",
  });
}
