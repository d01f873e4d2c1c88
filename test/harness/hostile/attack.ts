/** An attack of one organization, or of a client without a key, on the event loop that all share: a row of `test/api/hostile`. */
import type { TestDaemon } from "../daemon.ts";

/** The attacker's knowledge of the service. */
export interface Target {
  url: string;
  ssh_port: number;
  /** The attacking organization's key. */
  key: string;
  /** Of the attack's own making, in its `prepare`. */
  prepared: unknown;
}

/** Counts the answers and refusals that the attacker gets. */
export type Count = (kind: string) => void;

export interface Attack {
  title: string;
  /** Of the daemon. */
  env?: Record<string, string>;
  /**
   * Longest p99 that others may have in any case, in milliseconds; 10 if absent. A larger one is a little more than was measured on two idle
   * cores, and is to be lowered with the work that the attack finds.
   */
  mostP99Ms?: number;
  /** Kinds of answers that must be among those the attacker gets: without them it does not reach the path it is meant for. */
  expected?: readonly string[];
  /** Milliseconds between two calls of the other organization; 5 if absent. */
  everyMs?: number;
  /** Number of the service's hosts, of which the first is attacked; 1 outside of a cluster if absent. */
  hosts?: number;
  /** Creates the attack's targets; the value is handed to the attack as JSON. */
  prepare?(daemon: TestDaemon): Promise<unknown>;
  /** Ends the things that `prepare` has started. */
  finish?(): Promise<void>;
  /** Runs in a separate process until that is ended. */
  attack(target: Target, count: Count): Promise<void>;
}

/** The answer to an attacker's call: the status, and the code of a refusal. */
export interface Answered {
  status: number;
  code: string | null;
}

/** A call of the attacker; its answer is read to the end. Rejects if the connection breaks. */
export async function call(
  { url, key }: Target,
  method: string,
  path: string,
  body?: string | object,
  headers: Record<string, string> = {},
): Promise<Answered> {
  const response = await fetch(url + path, {
    method,
    headers: {
      authorization: `Bearer ${key}`,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  return await answeredBy(response);
}

/** Reads the answer to its end. */
export async function answeredBy(response: Response): Promise<Answered> {
  const bytes = await response.arrayBuffer();
  const problem = response.ok ? null : Object(JSON.parse(Buffer.from(bytes).toString() || "null"));
  return { status: response.status, code: problem?.code ?? null };
}

const kindOf = ({ status, code }: Answered) => (code === null ? String(status) : `${status} ${code}`);

/** Keeps `lanes` calls in flight until the process ends. */
export async function keepCalling(
  lanes: number,
  count: Count,
  make: (n: number, lane: number) => Promise<Answered>,
): Promise<void> {
  let n = 0;
  const keep = async (lane: number): Promise<never> => {
    for (;;) count(await make(n++, lane).then(kindOf, () => "broken"));
  };
  await Promise.all(Array.from({ length: lanes }, (_, lane) => keep(lane)));
}

/** Does work for each number below `count`, `atATime` in parallel. */
export async function each(count: number, atATime: number, work: (n: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const lane = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: atATime }, lane));
}

/** Has an agent of this name be known in a room. */
export async function makeAgent(daemon: TestDaemon, room: string, agent: string): Promise<void> {
  await daemon.ok("GET", `/v1/rooms/${room}/messages?agent_id=${agent}`);
}

/** Sends a message to agent `a` of room `r` at this interval, until the attacker's process ends. */
export function sendEvery(everyMs: number, target: Target, count: Count): void {
  setInterval(() => {
    const message = { source: "b", destination: "a", payload: 1 };
    void call(target, "POST", "/v1/rooms/r/messages", message)
      .then(kindOf, () => "broken")
      .then(count);
  }, everyMs);
}
