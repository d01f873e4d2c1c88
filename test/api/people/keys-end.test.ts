/** Revocation of a key closes all that was opened with it, on every transport and for every cause of the revocation. */
import { connect } from "node:net";
import { utils } from "ssh2";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Answer, type Json, TestDaemon } from "../../harness/daemon.ts";
import { bearer, makeKey, run, until } from "../calls.ts";

/** Longer than a test: no wait in this file expires by its own timeout. */
const LONG_MS = 50_000;
const KEYS = "/v1/orgs/self/keys";
const WAIT = `/v1/rooms/r/messages?agent_id=waiter&wait_ms=${LONG_MS}`;
const FILE = "/v1/rooms/r/drive/files/large";
const FILE_BYTES = 48 * 1024 ** 2;

let daemon: TestDaemon;
beforeAll(async () => {
  daemon = await TestDaemon.start();
  await daemon.room("r");
  const body = new Uint8Array(FILE_BYTES);
  const sent = await fetch(daemon.url + FILE, { method: "PUT", headers: bearer(daemon.apiKey), body });
  expect(sent.status).toBe(201);
});
afterAll(() => daemon.stop());

type Ending = (key: { key_id: string; key: string }) => Promise<unknown>;
const byApi: Ending = ({ key_id }) => daemon.ok("DELETE", `${KEYS}/${key_id}`);
const byItself: Ending = ({ key_id, key }) => daemon.api("DELETE", `${KEYS}/${key_id}`, undefined, bearer(key));
const byOperator: Ending = ({ key_id }) => run(daemon, "key", "revoke", key_id);
const byRotation: Ending = ({ key_id }) => daemon.ok("POST", `${KEYS}/${key_id}/rotate`, { grace_seconds: 0 });

/** Resolves once the daemon has been at something of this key: its record is written when a call is over, its use before. */
async function untilUsed(keyId: string): Promise<void> {
  await until(
    async () => (await daemon.ok("GET", `${KEYS}?limit=1000`)).items,
    (items) => items.some((each: Json) => each.key_id === keyId && each.last_used_at !== null),
  );
}

const cut = { status: 401, body: { code: "invalid_api_key" } };

describe("a waiting call", () => {
  test.each<[string, Ending]>([
    ["the API", byApi],
    ["the key itself", byItself],
    ["the operator, in another process", byOperator],
    ["rotation without grace", byRotation],
  ])("is answered when its key is ended by %s", async (_, end) => {
    const key = await makeKey(daemon);
    const waiting = daemon.api("GET", WAIT, undefined, bearer(key.key));
    await untilUsed(key.key_id);
    await end(key);
    expect(await waiting).toMatchObject(cut);
  });

  test("is answered when its key expires, also when a grace period ends", async () => {
    const { key } = await makeKey(daemon, { expires_in_seconds: 2 });
    const rotated = await makeKey(daemon);
    const waiting = [key, rotated.key].map((each) => daemon.api("GET", WAIT, undefined, bearer(each)));
    await untilUsed(rotated.key_id);
    await daemon.ok("POST", `${KEYS}/${rotated.key_id}/rotate`, { grace_seconds: 1 });
    for (const answer of await Promise.all(waiting)) expect(answer).toMatchObject(cut);
  });

  test("at a barrier or for a reply is answered; calls of other keys continue", async () => {
    const key = await makeKey(daemon);
    const other = new AbortController();
    const arrival = (agent_id: string) => ({ barrier_id: "b", agent_id, parties: 3, timeout_ms: 60_000 });
    const calls = (own: string, signal?: AbortSignal): Promise<Answer>[] => [
      daemon.api("POST", "/v1/rooms/r/barriers", arrival(own.slice(-8)), bearer(own), signal),
      daemon.api("GET", WAIT, undefined, bearer(own), signal),
    ];
    const cutOff = calls(key.key);
    const goingOn = calls(daemon.apiKey, other.signal);
    await untilUsed(key.key_id);
    await byApi(key);
    for (const answer of await Promise.all(cutOff)) expect(answer).toMatchObject(cut);
    const first = await Promise.race([...goingOn, daemon.ok("GET", "/v1/me").then(() => "still waiting")]);
    expect(first).toBe("still waiting");
    other.abort();
    await Promise.allSettled(goingOn);
  });

  test("leaves a record that it was aborted", async () => {
    const key = await makeKey(daemon);
    const waiting = daemon.api("GET", WAIT, undefined, bearer(key.key));
    await untilUsed(key.key_id);
    await byApi(key);
    await waiting;
    // A reader is answered before the record of its reading is written.
    const own = await until(
      async () => {
        const { items } = await daemon.ok("GET", "/v1/orgs/self/audit?event=message.read&outcome=denied");
        return items.find(({ actor }: Json) => actor.id === key.key_id);
      },
      (found) => found !== undefined,
    );
    expect(own).toMatchObject({ status: 401, error_code: "invalid_api_key", room_id: "r" });
  });
});

describe("a stream", () => {
  test.each<[string, Ending]>([
    ["the API", byApi],
    ["the operator", byOperator],
  ])("of events reports why it ends when its key is ended by %s", async (_, end) => {
    const key = await makeKey(daemon);
    const response = await fetch(`${daemon.url}/v1/rooms/r/events`, { headers: bearer(key.key) });
    expect(response.status).toBe(200);
    await end(key);
    const lines = (await response.text()).trim().split("\n");
    expect(JSON.parse(lines.at(-1) ?? "")).toMatchObject({ type: "error", code: "invalid_api_key" });
  });

  test("of a file is aborted", async () => {
    const key = await makeKey(daemon);
    const { socket, closed } = open(`GET ${FILE} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key.key}\r\n\r\n`);
    let bytes = 0;
    const started = Promise.withResolvers<void>();
    socket.once("data", () => {
      socket.pause();
      started.resolve();
    });
    await started.promise;
    socket.on("data", (chunk) => {
      bytes += chunk.length;
    });
    socket.pause();
    await byApi(key);
    socket.resume();
    await closed;
    expect(bytes).toBeLessThan(FILE_BYTES);
  });

  test("of a file is complete while its key is valid, and its subscription to the key is released", async () => {
    const { key } = await makeKey(daemon);
    const bytes = await (await fetch(daemon.url + FILE, { headers: bearer(key) })).bytes();
    expect(bytes.length).toBe(FILE_BYTES);
  });
});

describe("an upload in progress", () => {
  test("of a file is aborted, and leaves no file", async () => {
    const key = await makeKey(daemon);
    const head = `PUT /v1/rooms/r/drive/files/late HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key.key}\r\nContent-Length: 8\r\n\r\n`;
    const { socket, answered } = open(`${head}half`);
    await untilUsed(key.key_id);
    await byApi(key);
    expect(await answered).toMatch(/^HTTP\/1\.1 401 /);
    socket.destroy();
    expect((await daemon.problem("GET", "/v1/rooms/r/drive/files/late")).code).toBe("path_not_found");
  });

  test("of fields has no effect", async () => {
    const key = await makeKey(daemon);
    const body = JSON.stringify({ room_id: "too-late" });
    const head = `POST /v1/rooms HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key.key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`;
    const { socket, answered } = open(head + body.slice(0, 4));
    await untilUsed(key.key_id);
    await byApi(key);
    socket.write(body.slice(4));
    expect(await answered).toMatch(/^HTTP\/1\.1 401 /);
    socket.destroy();
    expect((await daemon.problem("GET", "/v1/rooms/too-late")).code).toBe("room_not_found");
  });
});

function open(request: string) {
  const { hostname, port } = new URL(daemon.url);
  const socket = connect({ host: hostname, port: Number(port) });
  socket.on("error", () => {});
  const closed = new Promise<unknown>((done) => socket.once("close", done));
  const answered = new Promise<string>((done) => socket.once("data", (chunk) => done(chunk.toString("latin1"))));
  socket.write(request);
  return { socket, closed, answered };
}

test("objects that a key adds during its revocation are removed with it", async () => {
  const SSH_KEYS = "/v1/orgs/self/ssh-keys";
  const { key_id, key } = await makeKey(daemon, { scopes: ["keys:write", "terminal"] });
  const add = (_: unknown, n: number) => {
    const { public: public_key } = utils.generateKeyPairSync("ed25519");
    // A call with an idempotency key has a separate commit before that of its work.
    const once = n % 2 === 0 ? {} : { "idempotency-key": `added-${n}` };
    return daemon.api("POST", SSH_KEYS, { public_key, name: "x" }, { ...bearer(key), ...once });
  };
  const adding = Array.from({ length: 8 }, add);
  await daemon.ok("DELETE", `${KEYS}/${key_id}`);
  await Promise.all(adding);
  const { items } = await daemon.ok("GET", SSH_KEYS);
  expect(items.filter(({ created_by }: Json) => created_by.id === key_id)).toEqual([]);
});
