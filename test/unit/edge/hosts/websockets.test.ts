/** A WebSocket with its client at one host and its other end at another: messages and closes are forwarded unchanged in both directions. */
import { expect, test } from "vitest";
import type { DuplexSession, Peer } from "../../../../daemon/core/concurrency/duplex-session.ts";
import { takenProtocol, upgrade } from "../../../../daemon/edge/http/websocket.ts";
import { MAX_SOCKET_MESSAGE_BYTES } from "../../../../shared/api/ports.ts";
import { until } from "../tls-fixture.ts";
import { ABOUT, clientOf, descriptors, entry, listen, members } from "./fixture.ts";

/** A peer that echoes its messages, executes commands, and records how it was closed. */
class Echo implements DuplexSession {
  readonly mostBytes = MAX_SOCKET_MESSAGE_BYTES;
  leftWith: unknown[] | null = null;
  sent = 0;
  #client: Peer | null = null;

  start(client: Peer): void {
    this.#client = client;
  }
  hear(text: string): void {
    if (text === "flood") void this.#flood();
    else if (text.startsWith("close ")) this.#client?.close(Number(text.slice(6)), "as you say");
    else this.#client?.say(`heard ${text}`);
  }
  take(bytes: Uint8Array): void {
    void this.#client?.send(bytes);
  }
  left(...how: unknown[]): void {
    this.leftWith = how;
  }

  async #flood(): Promise<void> {
    for (const piece = new Uint8Array(256 * 1024); this.leftWith === null && this.sent < 1024 ** 3; ) {
      await this.#client?.send(piece);
      this.sent += piece.byteLength;
    }
  }
}

async function hosts() {
  const made = await members("owner", "entry");
  const [owner, member] = made;
  const echoes: Echo[] = [];
  const asked: Headers[] = [];
  const { reached, listener, stop } = listen(owner, [member], (request, server) => {
    asked.push(request.headers);
    const { headers } = request;
    if (headers.get("authorization") !== "Bearer key" && !headers.get("sec-websocket-protocol")?.includes("ttk_"))
      return Response.json({ code: "missing_credentials" }, { status: 401, headers: { "X-Roomd-Host": "owner" } });
    const echo = new Echo();
    echoes.push(echo);
    const answered = takenProtocol(headers);
    answered.set("X-Roomd-Host", "owner");
    return upgrade(server, request, echo, answered) ? undefined : new Response(null, { status: 400 });
  });
  const client = clientOf(member);
  const door = entry(client, reached, ABOUT);
  return {
    echoes,
    asked,
    http: door.url,
    url: `${door.url.replace("http", "ws")}/v1/rooms/a/terminal?x=1`,
    removeEntry: () => listener.admit([owner.own.cert]),
    stopOwner: stop,
    [Symbol.asyncDispose]: async () => {
      client.close();
      await Promise.all([door.stop(), stop()]);
      made[Symbol.dispose]();
    },
  };
}

const KEY = { headers: { authorization: "Bearer key" } };

function opened(url: string, options: object = KEY) {
  const socket = new WebSocket(url, options as never);
  socket.binaryType = "arraybuffer";
  const heard: unknown[] = [];
  const open = Promise.withResolvers<void>();
  const closed = Promise.withResolvers<[number, string]>();
  socket.onopen = () => open.resolve();
  socket.onmessage = ({ data }) => void heard.push(data);
  socket.onclose = ({ code, reason }) => closed.resolve([code, reason]);
  socket.onerror = () => open.reject(new Error("not opened"));
  return { socket, heard, open: open.promise, closed: closed.promise };
}

test("text and bytes pass both ways, in all sizes, and the client's close reaches the owner", async () => {
  await using at = await hosts();
  const { socket, heard, open } = opened(at.url);
  await open;
  expect(Object.fromEntries(at.asked[0] ?? [])).toMatchObject({
    authorization: "Bearer key",
    "x-roomd-hop": "1",
    "x-roomd-forwarded-for": "192.0.2.7",
    "x-request-id": "req-of-test",
  });
  socket.send("hällo");
  await until(() => heard.length === 1);
  expect(heard[0]).toBe("heard hällo");
  const large = new Uint8Array(3 * 1024 ** 2).map((_, at) => at % 251);
  socket.send(large);
  socket.send(new Uint8Array(0));
  await until(() => heard.length === 3);
  expect(Buffer.from(heard[1] as ArrayBuffer).equals(large)).toBe(true);
  expect(Object(heard[2]).byteLength).toBe(0);
  socket.close(4007, "enough");
  await until(() => at.echoes[0]?.leftWith !== null);
  expect(at.echoes[0]?.leftWith).toEqual([4007, "enough"]);
});

test("the owner's close reaches the client", async () => {
  await using at = await hosts();
  for (const code of [1000, 1011, 3999, 4999]) {
    const { socket, open, closed } = opened(at.url);
    await open;
    socket.send(`close ${code}`);
    expect(await closed).toEqual([code, "as you say"]);
  }
});

test("the owner selects the protocol, and reads the token among the offered ones", async () => {
  await using at = await hosts();
  const token = `roomd.token.ttk_${"a".repeat(43)}`;
  const { socket, open } = opened(at.url, { protocols: ["roomd.terminal", token] });
  await open;
  expect(socket.protocol).toBe("roomd.terminal");
  expect(at.asked[0]?.get("sec-websocket-protocol")).toBe(`roomd.terminal, ${token}`);
  socket.close();
});

test("a refusal of the owner reaches the client unchanged", async () => {
  await using at = await hosts();
  const headers = {
    connection: "Upgrade",
    upgrade: "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
  };
  const answer = await fetch(at.http, { headers });
  expect([answer.status, await answer.json(), answer.headers.get("x-roomd-host")]).toEqual([
    401,
    { code: "missing_credentials" },
    "owner",
  ]);
});

test("a client that vanishes, an owner that dies, and an entry that is removed end both sides", async () => {
  await using at = await hosts();
  const one = opened(at.url);
  await one.open;
  one.socket.terminate();
  await until(() => at.echoes[0]?.leftWith !== null);
  const two = opened(at.url);
  await two.open;
  at.removeEntry();
  expect(await two.closed).toEqual([1001, "Server closed"]);
  await until(() => at.echoes[1]?.leftWith !== null);
  await expect(opened(at.url).open).rejects.toThrow();
  await at.stopOwner();
});

test("a client that does not read blocks the owner", async () => {
  await using at = await hosts();
  const { socket, open } = opened(at.url);
  await open;
  socket.pause();
  socket.send("flood");
  let before = -1;
  await until(async () => {
    const sent = at.echoes[0]?.sent ?? 0;
    const isStill = sent > 0 && sent === before;
    before = sent;
    await Bun.sleep(300);
    return isStill;
  });
  expect(at.echoes[0]?.sent).toBeLessThan(64 * 1024 ** 2);
  socket.terminate();
  await until(() => at.echoes[0]?.leftWith !== null);
});

test("300 of them leave no descriptor open", async () => {
  await using at = await hosts();
  const one = async () => {
    const { socket, open, closed } = opened(at.url);
    await open;
    socket.close(1000);
    await closed;
  };
  await one();
  await until(() => at.echoes.every(({ leftWith }) => leftWith !== null));
  const before = descriptors();
  for (let n = 0; n < 30; n++) await Promise.all(Array.from({ length: 10 }, one));
  await until(() => at.echoes.length === 301 && at.echoes.every(({ leftWith }) => leftWith !== null));
  await until(() => descriptors() <= before + 5);
});
