/**
 * A checker of message histories: agents that send to each other and read their inboxes from their own cursors, across kills of the daemon,
 * and the invariants of all that they saw. A sender that loses an answer sends the same message again.
 */
import type { Json, TestDaemon } from "./daemon.ts";
import type { Chance } from "./random.ts";

export interface Sent {
  source: string;
  destination: string;
  message_id: string;
  /** Which message of this pair it is; the next is sent once this one is acknowledged. */
  number: number;
}

export interface Seen {
  message_id: string;
  source: string;
  number: number;
  seq: number;
  /** The cursor that the reader had. */
  after: number;
}

export class FabricHistory {
  readonly acknowledged: Sent[] = [];
  readonly #seen = new Map<string, Seen[]>();

  saw(agent: string, messages: Seen[]): void {
    this.#seen.set(agent, [...(this.#seen.get(agent) ?? []), ...messages]);
  }

  /** How many acknowledged messages their recipients have not seen yet. */
  get missing(): number {
    return this.acknowledged.length - [...this.#seen.values()].reduce((sum, seen) => sum + seen.length, 0);
  }

  /** Every breach, in words; none when all is well. */
  breaches(): string[] {
    const found: string[] = [];
    const seenBy = new Map(
      [...this.#seen].map(([agent, seen]) => [agent, new Set(seen.map((each) => each.message_id))]),
    );
    for (const { destination, message_id, source } of this.acknowledged) {
      if (!seenBy.get(destination)?.has(message_id))
        found.push(`${message_id} of ${source} never came to ${destination}`);
    }
    for (const [agent, seen] of this.#seen) found.push(...breachesOf(agent, seen));
    return found;
  }
}

function breachesOf(agent: string, seen: readonly Seen[]): string[] {
  const found: string[] = [];
  const numbers = new Map<string, number>();
  const once = new Set<string>();
  let lastSeq = 0;
  for (const { message_id, source, number, seq, after } of seen) {
    if (seq <= after) found.push(`${agent} saw ${message_id} (${seq}) at or before its cursor ${after}`);
    if (once.has(message_id)) found.push(`${agent} saw ${message_id} twice`);
    once.add(message_id);
    if (seq <= lastSeq) found.push(`${agent} saw seq ${seq} after ${lastSeq}`);
    lastSeq = seq;
    const before = numbers.get(source) ?? -1;
    if (number !== before + 1) found.push(`${agent} saw number ${number} of ${source} after ${before}`);
    numbers.set(source, number);
  }
  return found;
}

/** Sends `count` messages to agents of chance, one after another; each until it is acknowledged. */
export async function sendMany(
  daemon: TestDaemon,
  history: FabricHistory,
  place: { path: string; source: string; agents: readonly string[]; count: number; random: Chance },
): Promise<void> {
  const { path, source, agents, count, random } = place;
  const numbers = new Map<string, number>();
  for (let index = 0; index < count; index++) {
    const destination = random.pick(agents);
    const number = numbers.get(destination) ?? 0;
    numbers.set(destination, number + 1);
    const message_id = `${source}.${index}`;
    const body = { source, destination, message_id, payload: { number } };
    await untilAnswered(async () => {
      const { status, body: answer } = await daemon.api("POST", `${path}/messages`, body);
      if (status === 429) return false;
      if (status !== 202 && status !== 200) throw new Error(`${message_id}: ${status} ${JSON.stringify(answer)}`);
      return true;
    });
    history.acknowledged.push({ source, destination, message_id, number });
  }
}

/** Reads an inbox from the reader's own cursor on, until `over` is given and nothing more comes. */
export async function readAll(
  daemon: TestDaemon,
  history: FabricHistory,
  place: { path: string; agent: string; over(): boolean },
): Promise<void> {
  const { path, agent, over } = place;
  let after = 0;
  for (;;) {
    const isOver = over();
    let page: Json;
    await untilAnswered(async () => {
      const query = `agent_id=${agent}&after=${after}&limit=200&wait_ms=${isOver ? 0 : 500}`;
      const answer = await daemon.api("GET", `${path}/messages?${query}`);
      if (answer.status !== 200) throw new Error(`${agent}: ${answer.status} ${JSON.stringify(answer.body)}`);
      page = answer.body;
      return true;
    });
    const cursor = after;
    history.saw(
      agent,
      page.items.map((item: Json) => ({ ...item, number: item.payload.number, after: cursor })),
    );
    after = page.next_after;
    if (isOver && page.items.length === 0) return;
  }
}

const PAUSE_MS = 20;
const DEADLINE_MS = 60_000;

/** A daemon that was killed answers nothing; the same call again is made until it does. */
async function untilAnswered(ask: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + DEADLINE_MS;
  for (;;) {
    try {
      if (await ask()) return;
    } catch (error) {
      if (!(error instanceof TypeError) && !isGone(error)) throw error;
      if (performance.now() > end) throw error;
    }
    await Bun.sleep(PAUSE_MS);
  }
}

function isGone(error: unknown): boolean {
  const code = Object(error).code;
  return (
    code === "ECONNRESET" || code === "ECONNREFUSED" || code === "ConnectionRefused" || code === "FailedToOpenSocket"
  );
}
