/**
 * Requests and responses between two hosts: forwarded completely and unchanged, nothing else passes, and the end of one side ends the
 * other.
 */
import { connect } from "node:net";
import { expect, test } from "vitest";
import { ServiceError } from "../../../../daemon/core/service-error.ts";
import { forwardJson, forwardRequest } from "../../../../daemon/edge/hosts/forward.ts";
import { until } from "../tls-fixture.ts";
import { ABOUT, clientOf, descriptors, entry, listen, members, rawOwner, sha256 } from "./fixture.ts";

const MIB = 1024 ** 2;
const BODY_BYTES = (process.env.ROOMD_TEST_LONG === "1" ? 1024 : 256) * MIB;
const MAX_GROWTH_BYTES = 160 * MIB;
const LONG_MS = 120_000;

/** Bytes in pieces that all differ, with their digest. */
function pieces(total: number) {
  const digest = sha256();
  let made = 0;
  const next = (): Uint8Array | null => {
    if (made >= total) return null;
    const piece = new Uint8Array(Math.min(256 * 1024, total - made)).fill((made / 65_536) & 255);
    piece[0] = (made >> 18) & 255;
    made += piece.byteLength;
    digest.add(piece);
    return piece;
  };
  const stream = () =>
    new ReadableStream<Uint8Array>(
      {
        pull: (controller) => {
          const piece = next();
          if (piece) controller.enqueue(piece);
          else controller.close();
        },
      },
      { highWaterMark: 0 },
    );
  return { stream, text: () => digest.text(), made: () => made };
}

/** How much more memory than at first was in use at most. */
function memoryWatch() {
  Bun.gc(true);
  const atFirst = process.memoryUsage.rss();
  let most = atFirst;
  const timer = setInterval(() => {
    most = Math.max(most, process.memoryUsage.rss());
  }, 20);
  return () => {
    clearInterval(timer);
    return most - atFirst;
  };
}

async function digestOf(body: ReadableStream<Uint8Array> | null): Promise<string> {
  const digest = sha256();
  for await (const bytes of body as unknown as AsyncIterable<Uint8Array>) digest.add(bytes);
  return digest.text();
}

/** An owner, a member at which requests come in, and its public server. */
async function pair(answer: Parameters<typeof listen>[2], about = ABOUT) {
  const made = await members("owner", "entry");
  const [owner, member] = made;
  const { reached, stop } = listen(owner, [member], answer);
  const client = clientOf(member);
  const door = entry(client, reached, about);
  return {
    client,
    reached,
    url: door.url,
    stopOwner: stop,
    [Symbol.asyncDispose]: async () => {
      client.close();
      await Promise.all([door.stop(), stop()]);
      made[Symbol.dispose]();
    },
  };
}

test("method, path, query, headers and body arrive unchanged, with the entry's caller data", async () => {
  let seen: Record<string, unknown> = {};
  await using hosts = await pair(async (request) => {
    seen = {
      method: request.method,
      url: request.url,
      headers: Object.fromEntries(request.headers),
      body: await request.text(),
    };
    return new Response("made", {
      status: 201,
      headers: {
        Location: "/v1/rooms/a",
        "X-Roomd-Host": "owner",
        "Set-Cookie": "a=b",
        Connection: "X-Own",
        "X-Own": "1",
      },
    });
  });
  const sent = {
    authorization: "Bearer key",
    cookie: "a=b; c=d",
    "idempotency-key": "k-1",
    accept: "text/event-stream",
    range: "bytes=0-1",
    "if-match": '"a"',
    "if-none-match": '"b"',
    "last-event-id": "41",
    traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    "content-type": "application/json",
    "content-encoding": "identity",
    host: "rooms.example.org",
  };
  const forged = {
    "x-roomd-forwarded-for": "10.0.0.1",
    "x-roomd-hop": "7",
    "x-request-id": "of-the-caller",
    te: "trailers",
    "proxy-authorization": "Basic x",
  };
  const answer = await fetch(`${hosts.url}/v1/rooms/a%20b/c?x=1&y=%2F&z`, {
    method: "POST",
    headers: { ...sent, ...forged },
    body: '{"a":1}',
  });
  expect(answer.status).toBe(201);
  expect(await answer.text()).toBe("made");
  expect(answer.headers.get("location")).toBe("/v1/rooms/a");
  expect(answer.headers.get("x-roomd-host")).toBe("owner");
  expect(answer.headers.get("set-cookie")).toBe("a=b");
  expect(answer.headers.get("content-length")).toBe("4");
  expect(seen).toMatchObject({
    method: "POST",
    url: "https://rooms.example.org/v1/rooms/a%20b/c?x=1&y=%2F&z",
    body: '{"a":1}',
    headers: {
      ...sent,
      "content-length": "7",
      "x-roomd-forwarded-for": "192.0.2.7",
      "x-roomd-hop": "1",
      "x-request-id": "req-of-test",
    },
  });
  expect(seen.headers).not.toHaveProperty("te");
  expect(seen.headers).not.toHaveProperty("proxy-authorization");
  expect(seen.headers).not.toHaveProperty("transfer-encoding");
});

test("lengths are correct without a body, with an empty one and for HEAD", async () => {
  const seen: unknown[] = [];
  await using hosts = await pair(async (request) => {
    seen.push([request.method, request.headers.get("content-length"), await request.text()]);
    if (request.method === "DELETE") return new Response(null, { status: 204 });
    return new Response("0123456789", { headers: { ETag: '"e"' } });
  });
  expect(await (await fetch(hosts.url)).text()).toBe("0123456789");
  const head = await fetch(hosts.url, { method: "HEAD" });
  expect([head.headers.get("content-length"), head.headers.get("etag")]).toEqual(["10", '"e"']);
  expect((await fetch(hosts.url, { method: "POST" })).status).toBe(200);
  expect((await fetch(hosts.url, { method: "DELETE" })).status).toBe(204);
  expect(seen).toEqual([
    ["GET", null, ""],
    ["HEAD", null, ""],
    ["POST", "0", ""],
    ["DELETE", null, ""],
  ]);
  expect(hosts.client.opened).toBe(1);
});

test(`${BODY_BYTES / MIB} MiB are downloaded whole, in bounded memory`, { timeout: LONG_MS }, async () => {
  const content = pieces(BODY_BYTES);
  await using hosts = await pair(() => new Response(content.stream()));
  const growth = memoryWatch();
  const digest = await digestOf((await fetch(hosts.url)).body);
  expect(content.made()).toBe(BODY_BYTES);
  expect(digest).toBe(content.text());
  expect(growth()).toBeLessThan(MAX_GROWTH_BYTES);
  // The connection is as it was: the next one goes the same way.
  expect(hosts.client.opened).toBe(1);
});

test(`${BODY_BYTES / MIB} MiB are uploaded whole, in bounded memory`, { timeout: LONG_MS }, async () => {
  await using hosts = await pair(async (request) => new Response(await digestOf(request.body)));
  const content = pieces(BODY_BYTES);
  const growth = memoryWatch();
  const answer = await fetch(hosts.url, { method: "PUT", body: content.stream() });
  const digest = await answer.text();
  expect(content.made()).toBe(BODY_BYTES);
  expect(digest).toBe(content.text());
  expect(growth()).toBeLessThan(MAX_GROWTH_BYTES);
  const known = new Uint8Array(4 * MIB).fill(7);
  const sum = sha256();
  sum.add(known);
  expect(await (await fetch(hosts.url, { method: "PUT", body: known })).text()).toBe(sum.text());
  // The second one checks whether the owner is there, if the first request took over a second.
  expect(hosts.client.opened).toBeLessThanOrEqual(2);
});

test("a client that does not read blocks the owner", async () => {
  const content = pieces(BODY_BYTES);
  await using hosts = await pair(() => new Response(content.stream()));
  const socket = connect(Number(new URL(hosts.url).port), "127.0.0.1");
  socket.pause();
  socket.write("GET / HTTP/1.1\r\nhost: a.example\r\n\r\n");
  let before = -1;
  await until(async () => {
    const isStill = content.made() > 0 && content.made() === before;
    before = content.made();
    await Bun.sleep(300);
    return isStill;
  });
  expect(content.made()).toBeLessThan(64 * MIB);
  socket.destroy();
});

test("events arrive one by one, and the owner is notified immediately of a client's disconnect", async () => {
  let disconnects = 0;
  let say: (text: string) => void = () => {};
  await using hosts = await pair((request) => {
    request.signal.addEventListener("abort", () => disconnects++);
    const events = new ReadableStream({
      start: (controller) => {
        say = (text) => controller.enqueue(`data: ${text}\n\n`);
        say("0");
      },
    });
    return new Response(events, { headers: { "content-type": "text/event-stream" } });
  });
  const leaving = new AbortController();
  const { body, headers } = await fetch(hosts.url, { signal: leaving.signal });
  expect(headers.get("content-type")).toBe("text/event-stream");
  const reader = body?.getReader();
  for (let n = 0; n < 5; n++) {
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe(`data: ${n}\n\n`);
    say(String(n + 1));
  }
  expect(disconnects).toBe(0);
  const leftAt = performance.now();
  leaving.abort();
  await until(() => disconnects === 1);
  expect(performance.now() - leftAt).toBeLessThan(500);
});

test("a client that disconnects before the response aborts the call at the owner", async () => {
  let [started, disconnected] = [0, 0];
  await using hosts = await pair(async (request) => {
    started++;
    await new Promise<void>((left) => request.signal.addEventListener("abort", () => left()));
    disconnected++;
    return new Response("late");
  });
  const leaving = new AbortController();
  const response = fetch(hosts.url, { method: "POST", body: "{}", signal: leaving.signal }).catch(() => "left");
  await until(() => started === 1);
  leaving.abort();
  expect(await response).toBe("left");
  await until(() => disconnected === 1);
});

test("a client that has disconnected already sends no request", async () => {
  let served = 0;
  await using hosts = await pair(() => {
    served++;
    return new Response("hello");
  });
  const request = () => new Request("http://a.example/", { method: "POST", body: "{}" });
  for (let n = 0; n < 3; n++) {
    const forwarded = forwardRequest(hosts.client, hosts.reached, request(), ABOUT, AbortSignal.abort());
    await expect(forwarded).rejects.toThrow("abort");
  }
  expect(
    (await forwardRequest(hosts.client, hosts.reached, request(), ABOUT, new AbortController().signal)).status,
  ).toBe(200);
  expect([served, hosts.client.opened]).toEqual([1, 1]);
});

test("a client that aborts its body aborts the owner's too", async () => {
  let how = "";
  await using hosts = await pair(async (request) => {
    how = await digestOf(request.body).then(
      () => "whole",
      () => "broken",
    );
    return new Response(how);
  });
  const socket = connect(Number(new URL(hosts.url).port), "127.0.0.1");
  socket.on("error", () => {});
  socket.write(`POST / HTTP/1.1\r\nhost: a.example\r\ncontent-length: ${MIB}\r\n\r\n${"a".repeat(50_000)}`);
  await Bun.sleep(100);
  socket.destroy();
  await until(() => how !== "");
  expect(how).toBe("broken");
});

test("an owner that dies during a response aborts it, and before its first byte gives an error", async () => {
  await using hosts = await pair((request) => {
    if (request.url.endsWith("/never")) return new Promise<Response>(() => {});
    return new Response(new ReadableStream({ start: (controller) => controller.enqueue("begun") }));
  });
  const { body } = await fetch(hosts.url);
  const reader = body?.getReader();
  await reader?.read();
  const never = fetch(`${hosts.url}/never`, { method: "POST", body: "{}" });
  await until(() => hosts.client.opened === 2);
  await Bun.sleep(50);
  await hosts.stopOwner();
  await expect(reader?.read()).rejects.toThrow();
  const answer = await never;
  expect([answer.status, await answer.json()]).toEqual([
    503,
    { code: "host_unreachable", host: "owner", started: "unknown" },
  ]);
});

test("2,000 requests use few connections, and leave no descriptor open", { timeout: LONG_MS }, async () => {
  let served = 0;
  await using hosts = await pair(async (request) => {
    served++;
    return Response.json({ method: request.method, bytes: (await request.bytes()).byteLength });
  });
  const ask = async (n: number) => {
    const body = n % 3 === 0 ? null : new Uint8Array(n % 3 === 1 ? 100 : 100_000);
    const answer = await fetch(hosts.url, body ? { method: "POST", body } : {});
    expect(await answer.json()).toEqual({ method: body ? "POST" : "GET", bytes: body?.byteLength ?? 0 });
  };
  await Promise.all(Array.from({ length: 20 }, (_, n) => ask(n)));
  const before = descriptors();
  const { opened } = hosts.client;
  for (let round = 0; round < 100; round++) await Promise.all(Array.from({ length: 20 }, (_, n) => ask(n)));
  expect(served).toBe(2020);
  expect(hosts.client.opened).toBeLessThanOrEqual(25);
  // If a round took over a second, a check whether the owner is there opened a connection that is kept; both of its ends are in this
  // process.
  expect(descriptors()).toBeLessThanOrEqual(before + 5 + 2 * (hosts.client.opened - opened));
});

test("idle connections are closed, and closed ones are not used", async () => {
  using made = await members("owner", "entry");
  const [owner, member] = made;
  const ports = new Set<number | undefined>();
  const { reached, stop } = listen(owner, [member], (request, server) => {
    ports.add(server.requestIP(request)?.port);
    return new Response("hello");
  });
  using client = clientOf(member, { idleMs: 240, mostIdle: 2 });
  const ask = () =>
    forwardRequest(client, reached, new Request("http://a.example/"), ABOUT, new AbortController().signal);
  await ask();
  await ask();
  expect(ports.size).toBe(1);
  await Bun.sleep(400);
  await ask();
  expect(ports.size).toBe(2);
  await Promise.all(Array.from({ length: 10 }, ask));
  const opened = client.opened;
  // Of ten concurrent connections two are kept.
  await Promise.all(Array.from({ length: 3 }, ask));
  expect(client.opened).toBe(opened + 1);
  await stop();
  await expect(ask()).rejects.toThrow(ServiceError);
});

test.each([
  ["two lengths", "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello!"],
  [
    "a length and a coding",
    "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
  ],
  ["two codings", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"],
  ["another coding", "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n"],
  ["a signed length", "HTTP/1.1 200 OK\r\ncontent-length: +5\r\n\r\nhello"],
  ["a bare CR in a value", "HTTP/1.1 200 OK\r\nx-a: b\rset-cookie: c=d\r\ncontent-length: 0\r\n\r\n"],
  ["a continued line", "HTTP/1.1 200 OK\r\nx-a: b\r\n c\r\ncontent-length: 0\r\n\r\n"],
  ["a name with a space", "HTTP/1.1 200 OK\r\ncontent-length : 5\r\n\r\nhello"],
  ["a NUL", "HTTP/1.1 200 OK\r\nx-a: \u0000\r\ncontent-length: 0\r\n\r\n"],
  ["no declared end", "HTTP/1.1 200 OK\r\n\r\nhello"],
  ["another protocol", "HTTP/2 200\r\n\r\n"],
  ["a protocol that was not requested", "HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n"],
  ["a head without end", `HTTP/1.1 200 OK\r\nx-a: ${"a".repeat(70_000)}`],
])("an owner's response with %s is rejected, and its connection closed", async (_, response) => {
  using made = await members("owner", "entry");
  const [owner, member] = made;
  const raw = rawOwner(owner, response);
  using client = clientOf(member);
  const door = entry(client, raw.reached);
  const answer = await fetch(door.url);
  expect([answer.status, Object(await answer.json()).code]).toEqual([503, "host_unreachable"]);
  await until(() => raw.closed === 1);
  await door.stop();
  raw.stop();
});

test("bytes after a response are discarded", async () => {
  using made = await members("owner", "entry");
  const [owner, member] = made;
  const one = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
  const raw = rawOwner(owner, `${one}${one.replace("ok", "no")}`);
  using client = clientOf(member);
  const door = entry(client, raw.reached);
  for (let n = 0; n < 3; n++) expect(await (await fetch(door.url)).text()).toBe("ok");
  await until(() => raw.closed === 3);
  expect(client.opened).toBe(3);
  await door.stop();
  raw.stop();
});

test("a response in chunks of a wrong size is aborted", async () => {
  using made = await members("owner", "entry");
  const [owner, member] = made;
  const raw = rawOwner(owner, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nhello\r\n0\r\n\r\n");
  using client = clientOf(member);
  const door = entry(client, raw.reached);
  await expect(fetch(door.url).then((answer) => answer.text())).rejects.toThrow();
  await until(() => raw.closed === 1);
  await door.stop();
  raw.stop();
});

test("a POST is never sent twice: not even if the connection dies after it was sent", async () => {
  using made = await members("owner", "entry");
  const [owner, member] = made;
  // Answers the first request on each connection, and closes it on the second.
  const raw = rawOwner(owner, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", 1);
  using client = clientOf(member);
  const door = entry(client, raw.reached);
  expect((await fetch(door.url)).status).toBe(200);
  const posted = await fetch(door.url, { method: "POST", body: "{}" });
  expect([posted.status, Object(await posted.json()).code]).toEqual([503, "host_unreachable"]);
  expect(raw.asked.match(/POST/g)).toHaveLength(1);
  await door.stop();
  raw.stop();
});

test.each([
  ["a POST", { method: "POST", body: "{}" }, "unknown"],
  ["a DELETE", { method: "DELETE" }, "unknown"],
  ["a POST that is no JSON", { method: "POST", body: "{" }, "unknown"],
  ["a POST with a key", { method: "POST", body: "{}", headers: { "idempotency-key": "k" } }, undefined],
  ["a command with a name", { method: "POST", body: '{"exec_id":"e"}' }, undefined],
  ["a message with a name", { method: "POST", body: '{"message_id":"m"}' }, undefined],
  ["a GET", { method: "GET" }, undefined],
])("%s that the owner may have received reports whether it may have been carried out", async (_, sent, started) => {
  using made = await members("owner", "entry");
  const [owner, member] = made;
  const raw = rawOwner(owner, "", 0);
  using client = clientOf(member);
  const door = entry(client, raw.reached);
  const answer = await fetch(door.url, sent);
  expect([answer.status, await answer.json()]).toEqual([
    503,
    { code: "host_unreachable", host: "owner", ...(started && { started }) },
  ]);
  raw.stop();
  // The owner is gone, so it sees no byte of this one.
  const unseen = await fetch(door.url, sent);
  expect(await unseen.json()).toEqual({ code: "host_unreachable", host: "owner" });
  await door.stop();
});

test("a request on a stale connection is retried on another one", async () => {
  using made = await members("owner", "entry");
  const [owner, member] = made;
  const raw = rawOwner(owner, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
  using client = clientOf(member);
  const ask = (body: Record<string, unknown>) =>
    forwardJson(client, raw.reached, { method: "POST", path: "/x", fields: body }, ABOUT, new AbortController().signal);
  expect((await ask({ n: 1 })).status).toBe(200);
  raw.reset();
  expect((await ask({ n: 2 })).status).toBe(200);
  expect([client.opened, raw.asked.match(/POST/g)]).toEqual([2, ["POST", "POST"]]);
  raw.stop();
});

test("fields are sent as JSON, and header values cannot add headers", async () => {
  await using hosts = await pair(async (request) => {
    if (request.url.endsWith("/bytes")) return new Response(new Uint8Array([1, 2]));
    if (request.url.endsWith("/large")) return Response.json({ text: "a".repeat(200_000) });
    return Response.json(
      { url: request.url, body: await request.json(), key: request.headers.get("idempotency-key") },
      { status: 202 },
    );
  });
  const endSignal = new AbortController().signal;
  const ask = (request: Parameters<typeof forwardJson>[2]) =>
    forwardJson(hosts.client, hosts.reached, request, ABOUT, endSignal);
  const answer = await ask({
    method: "POST",
    path: "/v1/x",
    query: { a: "b c" },
    fields: { text: "ü" },
    headers: { "Idempotency-Key": "k" },
  });
  expect(answer).toMatchObject({
    status: 202,
    body: { url: `https://${hosts.reached.address}/v1/x?a=b+c`, body: { text: "ü" }, key: "k" },
  });
  expect((await ask({ method: "GET", path: "/bytes" })).body).toEqual(Buffer.from([1, 2]));
  expect((await ask({ method: "GET", path: "/large" })).body).toEqual({ text: "a".repeat(200_000) });
  for (const forged of ["a\r\nx-roomd-hop: 2", "a\u010aX: b", "a\u0000"]) {
    await expect(ask({ method: "GET", path: "/x", headers: { "Idempotency-Key": forged } })).rejects.toThrow(
      "character",
    );
  }
  await expect(ask({ method: "GET", path: "/x", headers: { "a b": "c" } })).rejects.toThrow("character");
  await expect(ask({ method: "GET", path: "/x y HTTP/1.1\r\nhost: b\r\n\r\n" })).rejects.toThrow();
});

test("a request is not forwarded to its own host", async () => {
  let received = 0;
  await using hosts = await pair(() => {
    received++;
    return new Response("hello");
  });
  const about = { ...ABOUT, own: "owner" };
  const forwarded = forwardRequest(
    hosts.client,
    hosts.reached,
    new Request("http://a.example/"),
    about,
    new AbortController().signal,
  );
  await expect(forwarded).rejects.toThrow();
  expect(received).toBe(0);
});

test("a streamed response is its events, as they arrive, until it is cancelled or aborted", async () => {
  let isLeft = false;
  await using hosts = await pair(async (request) => {
    const lines = [
      { seq: 0, type: "started" },
      { seq: 1, type: "stdout", data_b64: Buffer.from("\u00fc ab").toString("base64") },
    ].map((each) => JSON.stringify(each));
    const isEndless = request.url.endsWith("/endless");
    const body = async function* () {
      try {
        // In two pieces, the first of which ends within a line.
        yield Buffer.from(`${lines[0]}\n${lines[1]?.slice(0, 9)}`);
        yield Buffer.from(`${lines[1]?.slice(9)}\n`);
        if (isEndless) await new Promise((resolve) => request.signal.addEventListener("abort", resolve));
        else yield Buffer.from('{"seq":2,"ty');
      } finally {
        isLeft = true;
      }
    };
    return new Response(body() as never, { headers: { "content-type": "application/x-ndjson" } });
  });
  const ask = async (path: string) =>
    await forwardJson(hosts.client, hosts.reached, { method: "GET", path }, ABOUT, new AbortController().signal);
  const { events } = await ask("/broken");
  const received: unknown[] = [];
  for await (const some of events?.events ?? []) received.push(...some);
  expect(received).toMatchObject([
    { id: 0, data: { seq: 0, type: "started" } },
    { id: 1, data: { seq: 1, type: "stdout" }, data_b64: Buffer.from("\u00fc ab") },
    { id: null, data: { type: "error", code: "host_unreachable" } },
  ]);
  isLeft = false;
  const endless = (await ask("/endless")).events;
  expect((await endless?.events.next())?.value?.[0]?.id).toBe(0);
  endless?.cancel();
  await until(() => isLeft);
});
