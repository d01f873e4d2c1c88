/**
 * A history of three hosts: clients append to the inboxes and to files of two rooms, and read them whole, at every host, while the rooms move, hosts are
 * killed and stopped, and PostgreSQL fails; keys are made, used and revoked. ROOMD_TEST_SEED is the seed, and is printed. ROOMD_TEST_LONG=1 runs for
 * minutes, with a fault of PostgreSQL and one of a host together.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Json, NO_GUESTS, type TestDaemon } from "../../harness/daemon.ts";
import { shortOrLong, until } from "../../harness/guests.ts";
import {
  type Append,
  type Cut,
  type Fate,
  type Read,
  type Revocation,
  type Use,
  wrongLists,
  wrongUses,
} from "../../harness/hosts/append-history.ts";
import { TestHosts } from "../../harness/hosts/hosts.ts";
import { databaseStrikes, hostStrikes, type Strikes } from "../../harness/hosts/hosts-strikes.ts";
import { Chance } from "../../harness/random.ts";

const ROUNDS = shortOrLong("rounds of appends to rooms that move", 1, 12);
const HAS_PAIRS = shortOrLong("faults at a time", 1, 2) > 1;
const ROUND_MS = 18_000;
const APPENDERS = 5;
const CALL_MS = 20_000;
/** An inbox has 1,000 messages. */
const MAX_APPENDS = 450;
/** From the end of a cut of 1.5 s until a host follows the directory: TCP repeats a packet after twice the time. */
const HEAL_MS = 4_000;
/** For a host that is killed while the machine is busy. */
const UNTIL_MS = 60_000;
const chance = new Chance();

let service: TestHosts;

beforeAll(async () => {
  console.log(`seed ${chance.seed}`);
  service = await TestHosts.start(2, { env: NO_GUESTS }, { network: true });
  await service.add({ env: { ...NO_GUESTS, ROOMD_CLUSTER_URL: service.postgres.secondUrl } });
  await service.knowEachOther();
}, 60_000);

afterAll(async () => {
  await service?.[Symbol.asyncDispose]();
}, 60_000);

const nameOf = (host: TestDaemon) => host.env.ROOMD_HOST_ID ?? "";
const anyHost = () => chance.pick(service.hosts);
const FILE = "log";

/** Whether a response shows that the append was done; a call with an idempotency key may be a retry, so that its refusal proves nothing. */
function fateOf(status: number, body: Json, isNamed: boolean): Fate {
  if (status < 300) return "done";
  if (status >= 500 && (isNamed || body.details?.started === "unknown" || body.retryable !== true)) return "unknown";
  return "refused";
}

class History {
  readonly appends: Append[] = [];
  readonly reads: Read[] = [];
  readonly uses: Use[] = [];
  readonly revocations: Revocation[] = [];
  readonly cuts: Cut[] = [];
  readonly struck: string[] = [];
  moves = 0;
  readonly #rooms: readonly string[];
  readonly #revoked = new Map<string, string>();
  #count = 0;

  constructor(rooms: readonly string[]) {
    this.#rooms = rooms;
  }

  get lists(): string[] {
    return this.#rooms.flatMap((room) => [`${room} inbox`, `${room} file`]);
  }

  async append(): Promise<void> {
    const list = chance.pick(this.lists);
    if (this.appends.filter((each) => each.list === list).length >= MAX_APPENDS) {
      await this.read();
      return;
    }
    const [room, kind] = list.split(" ") as [string, string];
    const value = `v${this.#count++}`;
    const isNamed = chance.next() < 0.5;
    const headers: Record<string, string> = isNamed ? { "idempotency-key": value } : {};
    const message = { source: "a", destination: "b", payload: value };
    const line = { path: `/${FILE}`, content: `${value}\n`, append: true };
    const [path, body] = kind === "inbox" ? ["messages", message] : ["drive/write", line];
    const entry: Append = {
      list,
      value,
      host: "",
      began: performance.now(),
      ended: Number.POSITIVE_INFINITY,
      fate: "unknown",
    };
    this.appends.push(entry);
    // One with a name is repeated as an SDK does, at any host.
    for (let tries = isNamed ? 4 : 1; tries > 0 && entry.fate === "unknown"; tries--) {
      const host = anyHost();
      entry.host = nameOf(host);
      const answer = await this.#call(host, "POST", `/v1/rooms/${room}/${path}`, body, headers);
      if (answer) entry.fate = fateOf(answer.status, answer.body, isNamed);
      if (entry.fate === "unknown") await Bun.sleep(100);
    }
    if (entry.fate === "done") entry.ended = performance.now();
  }

  async read(list = chance.pick(this.lists), host = anyHost()): Promise<readonly string[] | null> {
    const began = performance.now();
    const [room, kind] = list.split(" ") as [string, string];
    const values = kind === "inbox" ? await this.#inbox(host, room) : await this.#file(host, room);
    if (values) this.reads.push({ list, values, host: nameOf(host), began, ended: performance.now() });
    return values;
  }

  async #inbox(host: TestDaemon, room: string): Promise<string[] | null> {
    const values: string[] = [];
    for (let after = 0; ; ) {
      const path = `/v1/rooms/${room}/messages?agent_id=b&limit=100&after=${after}`;
      const answer = await this.#call(host, "GET", path);
      if (answer?.status !== 200) return null;
      const { items } = answer.body;
      values.push(...items.map(({ payload }: Json) => payload));
      if (items.length < 100) return values;
      after = items.at(-1).seq;
    }
  }

  async #file(host: TestDaemon, room: string): Promise<string[] | null> {
    const answer = await fetch(`${host.url}/v1/rooms/${room}/drive/files/${FILE}`, {
      headers: { authorization: `Bearer ${host.apiKey}` },
      signal: AbortSignal.timeout(CALL_MS),
    }).catch(() => null);
    if (answer?.status !== 200) return null;
    const text = await answer.text().catch(() => null);
    // Readers may see a part of an addition.
    return text === null ? null : text.split("\n").slice(0, -1);
  }

  async #call(host: TestDaemon, method: string, path: string, body?: object, headers?: Record<string, string>) {
    return await host.api(method, path, body, headers, AbortSignal.timeout(CALL_MS)).catch(() => null);
  }

  async move(): Promise<void> {
    const path = `/v1/rooms/${chance.pick(this.#rooms)}/move`;
    const answer = await this.#call(anyHost(), "POST", path, { host: nameOf(anyHost()) });
    if (answer?.status === 200 && answer.body.from !== answer.body.to) this.moves++;
  }

  /** A key is made, used at all hosts, and revoked; then it is used until each host has refused it. */
  async revoke(): Promise<void> {
    const maker = anyHost();
    const keys = `/v1/orgs/${maker.orgId}/keys`;
    const made = await this.#call(maker, "POST", keys, { name: `k${this.#count++}`, scopes: ["rooms:read"] });
    if (made?.status !== 201) return;
    const { key, key_id } = made.body as { key: string; key_id: string };
    await Promise.all(service.hosts.map((host) => this.#use(host, key, key_id)));
    const revoked = await this.#call(anyHost(), "DELETE", `${keys}/${key_id}`);
    if (!revoked || revoked.status >= 300) return;
    this.revocations.push({ key: key_id, at: performance.now() });
    this.#revoked.set(key_id, key);
    for (const host of service.hosts) await until("the key is refused", () => this.#use(host, key, key_id), UNTIL_MS);
  }

  /** Whether a host refuses the key; null if the response does not show it. */
  async #use(host: TestDaemon, secret: string, key: string): Promise<boolean | null> {
    const began = performance.now();
    const authorization = `Bearer ${secret}`;
    const answer = await host.api("GET", "/v1/rooms", undefined, { authorization }).catch(() => null);
    if (answer?.status !== 200 && answer?.status !== 401) return null;
    const isTaken = answer.status === 200;
    this.uses.push({ key, host: nameOf(host), began, ended: performance.now(), isTaken });
    return !isTaken;
  }

  /** Each revoked key at each host, once all hosts have had their second after the last fault. */
  async useRevoked(): Promise<void> {
    await Bun.sleep(Math.max(0, ...this.cuts.map(({ until }) => until)) + HEAL_MS + 1_100 - performance.now());
    for (const [key, secret] of this.#revoked)
      for (const host of service.hosts)
        await until("the host answers", async () => (await this.#use(host, secret, key)) !== null, UNTIL_MS);
  }

  async strike(strikes: Strikes, host?: TestDaemon): Promise<void> {
    const [name, run] = chance.pick(Object.entries(strikes));
    this.struck.push(name);
    const cut: Cut = { from: performance.now(), until: Number.POSITIVE_INFINITY, ...(host && { host: nameOf(host) }) };
    this.cuts.push(cut);
    await run(chance.whole(100, 1_500));
    cut.until = performance.now();
  }
}

const strikeHost = (history: History, host = anyHost()) => history.strike(hostStrikes(host), host);
const strikeDatabase = (history: History) => history.strike(databaseStrikes(service.postgres));

async function strike(history: History): Promise<void> {
  if (HAS_PAIRS) await Promise.all([strikeHost(history), strikeDatabase(history)]);
  else await chance.pick([strikeHost, strikeDatabase])(history);
}

test(
  "every read of a list is a prefix of one order with all acknowledged appends, and a revoked key is refused",
  async () => {
    for (let round = 1; round <= ROUNDS; round++) await oneRound(round);
  },
  ROUNDS * (ROUND_MS + 60_000) + 60_000,
);

async function oneRound(round: number): Promise<void> {
  const rooms = [`one-${round}`, `two-${round}`];
  const history = new History(rooms);
  for (const room of rooms) {
    await until(
      "the room is made",
      async () => (await service.first.api("POST", "/v1/rooms", { room_id: room })).status === 201,
    );
    for (const agent of ["a", "b"])
      await service.first.ok("PUT", `/v1/rooms/${room}/agents/${agent}/subscriptions`, { topics: ["t"] });
    await service.first.ok("POST", `/v1/rooms/${room}/drive/write`, { path: `/${FILE}`, content: "" });
  }
  const end = performance.now() + ROUND_MS;
  const again = async (work: () => Promise<unknown>, pauseMs = 0) => {
    while (performance.now() < end) {
      await work();
      await Bun.sleep(pauseMs);
    }
  };
  await Promise.all([
    ...Array.from({ length: APPENDERS }, () => again(() => history.append(), 20)),
    ...Array.from({ length: 3 }, () => again(() => history.read(), 20)),
    again(() => history.move(), 100),
    again(() => history.revoke(), 100),
    again(() => strike(history), chance.whole(500, 1_500)),
  ]);
  // On a slow host no move may have had the time between two faults.
  await until(
    "a room has moved",
    async () => {
      if (history.moves === 0) await history.move();
      return history.moves > 0;
    },
    UNTIL_MS,
  );
  const { appends, reads, uses, revocations, cuts, struck } = history;
  const last = new Map<string, readonly string[]>();
  for (const list of history.lists) {
    for (const host of service.hosts) {
      const values = await until(`${list} is read at ${nameOf(host)}`, () => history.read(list, host), UNTIL_MS);
      last.set(list, values);
    }
  }
  await history.useRevoked();
  const keys = wrongUses(uses, revocations, cuts, HEAL_MS);
  const count = (fate: Fate) => appends.filter((each) => each.fate === fate).length;
  console.log(
    `round ${round}: ${count("done")} appends, ${count("refused")} refused, ${count("unknown")} unknown; ${reads.length} reads; ${history.moves} moves; ` +
      `${revocations.length} revocations, ${keys.checked} late calls; ${struck.length} faults: ${[...new Set(struck)].join(", ")}`,
  );
  expect(wrongLists(appends, reads, last)).toEqual([]);
  expect(keys.wrong).toEqual([]);
  expect(count("done")).toBeGreaterThan(50);
  expect(reads.length).toBeGreaterThan(20);
  expect(keys.checked).toBeGreaterThan(revocations.length);
}
