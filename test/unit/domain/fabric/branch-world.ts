/**
 * Agents that act in a room at random, each with a memory that can be copied like that of a guest, and the invariants that must hold for
 * them.
 */
import { EVERYONE } from "../../../../shared/api/fabric.ts";
import type { Chance } from "../../../harness/random.ts";
import type { Rooms } from "./rooms-fixture.ts";

const NAMES = ["ada", "bob", "cyd", "dan"];
const BARRIERS = ["merge", "ship"];
const TOPICS = ["t.one", "t.two", "t.>", "other"];

interface Processed {
  message_id: string;
  by: string;
}

/** Contents of a guest's memory. */
interface Memory {
  name: string;
  after: number;
  named: number;
  processed: Processed[];
  unacked: string[];
  /** The generation that it is at. */
  at: Record<string, number>;
  /** A call without a received response. */
  unanswered: { operation: string; input: object } | null;
}

/** A message that the room has accepted: its recipients, and whether it may expire before it is read. */
interface Accepted {
  recipients: string[];
  by: string;
  expires: boolean;
  seq: number;
}

export class World {
  readonly room: string;
  /** Share of the messages that have no time to be read. */
  expiring = 0.1;
  readonly #rooms: Rooms;
  readonly #chance: Chance;
  /** Line of history that it is in: every message contains it. */
  #line: string;
  memories: Memory[];
  accepted: Map<string, Accepted>;

  constructor(
    rooms: Rooms,
    chance: Chance,
    room: string,
    line = "first",
    copied?: Pick<World, "memories" | "accepted">,
  ) {
    [this.#rooms, this.#chance, this.room, this.#line] = [rooms, chance, room, line];
    const at = () => Object.fromEntries(BARRIERS.map((name) => [name, 1]));
    const fresh = (name: string): Memory => {
      return { name, after: 0, named: 0, processed: [], unacked: [], at: at(), unanswered: null };
    };
    this.memories = structuredClone(copied?.memories) ?? NAMES.map(fresh);
    this.accepted = structuredClone(copied?.accepted) ?? new Map();
  }

  /** A copy of the whole state, to be continued under another line of history. */
  copy(room: string, line: string): World {
    return new World(this.#rooms, this.#chance, room, line, this);
  }

  /** Everybody is known, so that * means all. */
  async begin(): Promise<void> {
    for (const memory of this.memories) await this.#subscribe(memory);
  }

  async live(steps: number): Promise<void> {
    for (let step = 0; step < steps; step++) {
      const memory = this.#chance.pick(this.memories);
      const does = this.#chance.pick(["send", "send", "send", "read", "read", "ack", "arrive", "subscribe"] as const);
      if (does === "send") await this.#send(memory);
      if (does === "read") await this.#read(memory);
      if (does === "ack") await this.#ackOne(memory);
      if (does === "arrive") await this.#arrive(memory, this.#chance.pick(BARRIERS));
      if (does === "subscribe") await this.#subscribe(memory);
    }
  }

  /** Calls that are accepted; their responses get lost. */
  async leaveUnanswered(): Promise<void> {
    for (const memory of this.memories) {
      const before = memory.named;
      await this.#send(memory);
      memory.named = before;
    }
  }

  /** Agents without a response retry: no new message may result. */
  async callAgain(): Promise<void> {
    for (const memory of this.memories) {
      if (!memory.unanswered) throw new Error(`${memory.name} has got every answer`);
      const { operation, input } = memory.unanswered;
      const { message_id, seq } = await this.#rooms.call(this.room, memory.name, operation, input);
      if (this.accepted.get(message_id)?.seq !== seq) throw new Error(`${message_id} was sent twice`);
      memory.named++;
      memory.unanswered = null;
    }
  }

  /** Completes everything that was started. */
  async finish(): Promise<void> {
    for (let isOver = false; !isOver; ) {
      isOver = true;
      for (const memory of this.memories) {
        while ((await this.#read(memory)) > 0) isOver = false;
        while (memory.unacked.length > 0) await this.#ackOne(memory);
      }
    }
    for (const barrier of BARRIERS) {
      const furthest = Math.max(...this.memories.map(({ at }) => at[barrier] ?? 0));
      for (let round = 0; round < 3; round++) {
        for (const memory of this.memories)
          if ((memory.at[barrier] ?? 0) <= furthest) await this.#arrive(memory, barrier);
      }
    }
  }

  /** Every violation of an invariant once all is finished, in words. */
  breaks(): string[] {
    const found: string[] = [];
    for (const { name, processed } of this.memories) {
      const seen = new Set<string>();
      for (const { message_id, by } of processed) {
        const message = this.accepted.get(message_id);
        if (seen.has(message_id)) found.push(`${name} processed ${message_id} twice`);
        if (!message?.recipients.includes(name)) found.push(`${name} processed ${message_id}, which was not for it`);
        if (message && message.by !== by)
          found.push(`${name} processed ${message_id} of ${by} instead of ${message.by}`);
        seen.add(message_id);
      }
      for (const [message_id, { recipients, expires }] of this.accepted) {
        if (!expires && recipients.includes(name) && !seen.has(message_id)) found.push(`${name} missed ${message_id}`);
      }
    }
    for (const barrier of BARRIERS) {
      const at = this.memories.map((memory) => memory.at[barrier]);
      if (new Set(at).size > 1) found.push(`they are at generations ${at.join()} of ${barrier}`);
    }
    return found;
  }

  async #send(memory: Memory, more: object = {}): Promise<void> {
    const others = NAMES.filter((name) => name !== memory.name);
    const [one, two] = [this.#chance.pick(others), this.#chance.pick(NAMES)];
    const address = this.#chance.pick([
      { destination: one },
      { destination: EVERYONE },
      { destinations: [...new Set([one, two])] },
      { topic: this.#chance.pick(["t.one", "t.two.three", "other"]) },
    ]);
    const expires = this.#chance.next() < this.expiring;
    const kind = this.#chance.pick(["event", "event", "request"]);
    const message_id = `${memory.name}.${memory.named}`;
    const input = {
      ...address,
      ...{ message_id, kind, payload: { by: this.#line }, ack_required: this.#chance.next() < 0.5 },
      ...(expires ? { ttl_ms: 1 } : { ttl_ms: 600_000 }),
      ...more,
    };
    await this.#sent(memory, "agent_send", input, {}, expires);
    memory.unanswered = { operation: "agent_send", input };
  }

  async #sent(
    memory: Memory,
    name: string,
    input: object,
    path: Record<string, string>,
    expires: boolean,
  ): Promise<void> {
    const { message_id, seq } = await this.#rooms.call(this.room, memory.name, name, input, path);
    const { deliveries } = (await this.#rooms.call(
      this.room,
      memory.name,
      "message_get",
      {},
      { message_id },
    )) as unknown as {
      deliveries: { agent_id: string }[];
    };
    const recipients = deliveries.map(({ agent_id }) => agent_id);
    this.accepted.set(message_id, { recipients, by: this.#line, expires, seq });
    memory.named++;
  }

  /** How many came. */
  async #read(memory: Memory): Promise<number> {
    const { after } = memory;
    const { items, next_after } = await this.#rooms.call(this.room, memory.name, "agent_wait", { after, limit: 3 });
    for (const { message_id, payload, kind, ack_required } of items) {
      memory.processed.push({ message_id, by: (payload as { by: string }).by });
      if (kind === "request" && this.#chance.next() < 0.7) {
        const reply = { reply_message_id: `${memory.name}.${memory.named}`, payload: { by: this.#line } };
        await this.#sent(memory, "message_reply", reply, { message_id }, false);
      } else if (ack_required) memory.unacked.push(message_id);
    }
    memory.after = next_after;
    return items.length;
  }

  async #ackOne(memory: Memory): Promise<void> {
    const message_id = memory.unacked.shift();
    if (message_id !== undefined) await this.#rooms.call(this.room, memory.name, "message_ack", {}, { message_id });
  }

  async #arrive(memory: Memory, barrier_id: string): Promise<void> {
    const generation = memory.at[barrier_id] ?? 1;
    const input = { barrier_id, generation, participants: NAMES, timeout_ms: 0 };
    const { state } = await this.#rooms.call(this.room, memory.name, "barrier_arrive", input);
    if (state === "released") memory.at[barrier_id] = generation + 1;
  }

  async #subscribe({ name }: Memory): Promise<void> {
    const topics = TOPICS.filter(() => this.#chance.next() < 0.5);
    await this.#rooms.call(this.room, name, "agent_subscribe", { agent_id: name, topics });
  }
}
