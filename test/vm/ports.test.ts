/** Exposed ports, to servers in a real guest: the data that passes through, backpressure, and the events that close a connection. */
import { createHash, randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Socket } from "node:net";
import { beforeAll, describe, expect, test } from "vitest";
import { ExposedPort } from "../harness/exposed-port.ts";
import { LONG, shortOrLong, until, untilState, withGuests } from "../harness/guests.ts";

const MIB = 1024 * 1024;
/** Bytes that may be buffered between the two ends: buffers of kernels, of Bun, and a window of the guest's link. */
const MAX_BETWEEN = 32 * MIB;
const SANDBOX = "p/sandboxes/a";

withGuests("ports", {}, (guests) => {
  let port: ExposedPort;
  const expose = (body: object) => ExposedPort.expose(guests.daemon, SANDBOX, body);
  const unexpose = (number: number) => guests.daemon.ok("DELETE", `/v1/rooms/${SANDBOX}/ports/${number}`);
  const rss = () =>
    Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${guests.daemon.pid}/status`, "utf8"))?.[1]) * 1024;

  beforeAll(async () => {
    await guests.daemon.room("p");
    await guests.daemon.sandbox("p", "a", guests.cid());
    port = await expose({ port: 8000 });
    expect(port.record.listening).toBe(false);
    expect(await (await port.fetch("")).json()).toMatchObject({ status: 502, code: "port_not_listening" });
    await port.serve(8001);
  });

  describe("a request", () => {
    test("reaches the server as one for localhost, without roomd's credentials", async () => {
      const { daemon } = guests;
      const seen = await port.json("a%2Fb/?x=1&port_token=old&y=%20", {
        method: "PUT",
        headers: {
          authorization: `Bearer ${daemon.apiKey}`,
          cookie: `a=1; roomd_port_token=${port.record.token}; b=2`,
          origin: daemon.url,
          referer: `${port.url}c?d`,
          "x-forwarded-for": "1.2.3.4",
          "x-forwarded-user": "root",
          forwarded: "for=1.2.3.4",
          "x-own": "kept",
          "x-key": `leaked ${daemon.apiKey}`,
          te: "trailers",
        },
      });
      expect([seen.method, seen.target]).toEqual(["PUT", "/a%2Fb/?x=1&y=%20"]);
      const headers = Object.fromEntries(seen.headers);
      expect(headers).toMatchObject({
        host: "localhost:8000",
        cookie: "a=1; b=2",
        origin: "http://localhost:8000",
        referer: "http://localhost:8000/c?d",
        connection: "close",
        "x-forwarded-for": "127.0.0.1",
        "x-forwarded-prefix": new URL(port.url).pathname.slice(0, -1),
        "x-own": "kept",
      });
      // Frameworks compare the origin with them if they are there.
      const outer = ["x-forwarded-host", "x-forwarded-proto"];
      for (const header of [
        "authorization",
        "x-port-token",
        "forwarded",
        "x-forwarded-user",
        "te",
        "x-key",
        ...outer,
      ]) {
        expect(headers).not.toHaveProperty(header);
      }
      expect(Object.fromEntries((await port.json("")).headers)).toMatchObject({
        "x-forwarded-host": new URL(daemon.url).host,
        "x-forwarded-proto": "http",
      });
      const own = await port.json("", { headers: { authorization: "Bearer the-applications-own" } });
      expect(Object.fromEntries(own.headers)).toMatchObject({ authorization: "Bearer the-applications-own" });
    });

    test("is counted with its bytes in both directions", async () => {
      const { daemon } = guests;
      const traffic = async () => {
        const { ports } = await daemon.ok("GET", `/v1/rooms/${SANDBOX}`);
        return ports.find((each: { port: number }) => each.port === 8000).traffic;
      };
      const before = await traffic();
      const sent = randomBytes(100_000).toString("hex");
      // A server that answers and closes before it has read everything resets the connection, and its answer may be lost.
      expect(await port.json("sink", { method: "POST", body: sent })).toMatchObject({ bytes: sent.length });
      const after = await until("the connection is closed", async () => {
        const now = await traffic();
        return now.open_connections === 0 && now;
      });
      expect(after.connections).toBe(before.connections + 1);
      expect(after.received_bytes - before.received_bytes).toBeGreaterThan(sent.length);
      expect(after.received_bytes - before.received_bytes).toBeLessThan(sent.length + 10_000);
      expect(after.sent_bytes).toBeGreaterThan(before.sent_bytes);
      expect(after.since).toBe(port.record.created_at);
    });

    test("gets the response, with Location and cookies rewritten for the client", async () => {
      const answer = await port.fetch("cookies");
      const prefix = new URL(port.url).pathname.slice(0, -1);
      expect([answer.status, answer.headers.get("location")]).toEqual([302, `${prefix}/next?a=b`]);
      expect(answer.headers.getSetCookie()).toEqual([`a=1; HttpOnly; Path=${prefix}/`, `b=2; Path=${prefix}/`]);
      for (const header of ["clear-site-data", "service-worker-allowed", "x-hop", "connection"]) {
        expect([header, answer.headers.get(header)]).toEqual([header, null]);
      }
      expect(answer.headers.get("x-stays")).toBe("1");
      const policy = answer.headers.get("content-security-policy") ?? "";
      expect(policy).toMatch(/^default-src 'self', sandbox .*allow-scripts/);
      expect(policy).not.toContain("allow-same-origin");
    });

    test("by HEAD has no body", async () => {
      const whole = await (await port.fetch("x")).bytes();
      const answer = await port.fetch("x", { method: "HEAD" });
      expect([answer.status, await answer.text()]).toEqual([200, ""]);
      expect(answer.headers.get("content-length")).toBe("0");
      const length = (await port.fetch("bytes?n=70000", { method: "HEAD" })).headers.get("content-length");
      expect([length, whole.byteLength > 0]).toEqual(["70000", true]);
    });

    test.each([
      ["interim", "hello world"],
      ["to-end", "until the end"],
    ])("is answered by /%s with its body", async (path, body) => {
      expect(await (await port.fetch(path)).text()).toBe(body);
    });

    test.each(["both", "folded", "very-short", "nonsense", "nothing", "endless-head", "unasked"])(
      "answered by /%s gets 502",
      async (path) => {
        // The reason is the answer, and not that it was long in coming.
        const detail = expect.stringMatching(/^The server on this port sent an invalid HTTP response: /);
        expect(await (await port.fetch(path)).json()).toMatchObject({ status: 502, code: "guest_unreachable", detail });
      },
    );

    test.each(["short", "short-chunk"])("answered by /%s is aborted, and not considered complete", async (path) => {
      await expect(port.fetch(path).then((answer) => answer.text())).rejects.toThrow();
    });

    test("can be answered before its body has arrived", async () => {
      const client = port.raw(`POST /early HTTP/1.1\r\nContent-Length: ${64 * MIB}`);
      expect(await textOf(client)).toMatch(/^HTTP\/1\.1 413 [\s\S]*too much$/);
    });

    test("whose body is aborted is incomplete for the server, too", async () => {
      const client = port.raw("POST /sink HTTP/1.1\r\nTransfer-Encoding: chunked");
      client.write("5\r\nhello\r\n-1\r\n\r\n0\r\n\r\n");
      expect(await textOf(client)).not.toContain("sha256");
    });
  });

  test("receives events individually as they happen", async () => {
    const answer = await port.fetch("events", { headers: { accept: "text/event-stream" } });
    expect(answer.headers.get("content-type")).toBe("text/event-stream");
    const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
    for (let number = 0; number < 4; number++) {
      const { value } = await reader.read();
      expect(Buffer.from(value ?? []).toString()).toBe(`data: ${number}\n\n`);
      await port.fetch("go");
    }
    await reader.cancel();
  });

  test("by WebSocket carries messages of every size and kind, pings, subprotocols and closes", async () => {
    const client = await port.socket("ws", { protocols: ["a", "b"], headers: port.token });
    expect(client.socket.protocol).toBe("b");
    for (const text of ["", "hello", "grüße", "x".repeat(70_000)]) {
      client.socket.send(text);
      expect(await client.next()).toBe(text);
    }
    const bytes = randomBytes(shortOrLong("KiB of a message", 192, 15 * 1024) * 1024 + 3);
    client.socket.send(bytes);
    expect(sha256((await client.next()) as Buffer)).toBe(sha256(bytes));
    const before = (await port.json("moved")).pongs;
    expect(before).toBeGreaterThanOrEqual(5);
    client.socket.close(4321, "enough");
    await until("the server has received the close code", async () => (await port.json("moved")).closed_with === 4321);
    const other = await port.socket("ws");
    other.socket.send("close 4242");
    expect(await other.closed).toEqual({ code: 4242, reason: "because" });
    const third = await port.socket("ws");
    third.socket.send("hang up");
    expect((await third.closed).code).toBe(1011);
    await expect(port.socket("ws", { headers: {} })).rejects.toThrow("not opened");
    await expect(port.socket("moved")).rejects.toThrow("not opened");
  });

  test(
    "large bodies are transferred completely, both ways",
    async () => {
      const up = shortOrLong("MiB up", 4, 200) * MIB;
      const down = shortOrLong("MiB down", 4, 1024) * MIB;
      const piece = randomBytes(MIB);
      const digest = createHash("sha256");
      for (let sent = 0; sent < up; sent += MIB) digest.update(piece);
      const expected = { bytes: up, sha256: digest.digest("hex") };
      const pieces = () => {
        let sent = 0;
        return new ReadableStream<Uint8Array>({
          pull: (controller) => {
            if (sent >= up) return controller.close();
            sent += MIB;
            controller.enqueue(piece);
          },
        });
      };
      const upSince = performance.now();
      expect(await port.json("sink", { method: "POST", body: pieces() })).toEqual(expected);
      const downSince = performance.now();
      const answer = await port.fetch(`bytes?n=${down}`);
      const taken = createHash("sha256");
      let size = 0;
      for await (const bytes of answer.body as unknown as AsyncIterable<Uint8Array>) {
        taken.update(bytes);
        size += bytes.byteLength;
      }
      const [upMbs, downMbs] = [up / (downSince - upSince), down / (performance.now() - downSince)].map((bytesPerMs) =>
        (bytesPerMs / 1000).toFixed(1),
      );
      console.log(
        `${up / MIB} MiB up at ${upMbs} MB/s and ${down / MIB} MiB down at ${downMbs} MB/s, their digests included`,
      );
      expect([size, taken.digest("hex")]).toEqual([down, (await port.json("moved")).sent_sha256]);
    },
    LONG ? 1_200_000 : 120_000,
  );

  test("a client that does not read makes the server wait, and vice versa", async () => {
    const before = rss();
    const deaf = port.raw(`GET /bytes?n=${2 ** 40} HTTP/1.1`);
    const sent = async () => (await port.json("moved")).sent as number;
    await until("the server sends", async () => (await sent()) > 0);
    const stoodAt = await untilStill(sent);
    expect(stoodAt).toBeLessThan(MAX_BETWEEN);
    deaf.resume();
    await until("the transfer continues", async () => (await sent()) > stoodAt);
    deaf.destroy();
    const ended = await untilStill(sent);
    expect(ended).toBeLessThan(2 ** 40);

    const length = 256 * MIB;
    const client = port.raw(`POST /hold HTTP/1.1\r\nContent-Length: ${length}`);
    const piece = Buffer.alloc(MIB);
    let written = 0;
    const write = (): void => {
      while (written < length) {
        written += MIB;
        if (!client.write(piece)) return void client.once("drain", write);
      }
    };
    write();
    const heldAt = await untilStill(async () => written);
    expect(heldAt).toBeLessThan(MAX_BETWEEN);
    await port.fetch("release");
    await until("the transfer continues", () => written > heldAt);
    client.destroy();
    const grown = rss() - before;
    expect(grown).toBeLessThan(2 * MAX_BETWEEN);
    console.log(`stalled after ${stoodAt} bytes down and ${heldAt} up; the daemon grew by ${grown} bytes`);
  });

  test("connections up to the limit are accepted, and more only when one ends", async () => {
    const other = await expose({ port: 8001, visibility: "public", label: "more" });
    expect(new URL(other.url).pathname).toMatch(/^\/p\/more-/);
    const open = await Promise.all(Array.from({ length: 64 }, () => other.fetch("events")));
    expect(open.map(({ status }) => status)).toEqual(open.map(() => 200));
    const refused = await other.fetch("");
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "1"]);
    expect(((await refused.json()) as { code: string }).code).toBe("insufficient_capacity");
    expect((await port.fetch("")).status).toBe(200);
    for (const answer of open) await answer.body?.cancel();
    await until("a connection is free", async () => (await other.fetch("")).status === 200);
    await unexpose(8001);
  });

  test("the agent's own ports cannot be exposed: callers could act as the agent", async () => {
    // The address at which the guest's own programs find their room.
    expect(await guests.daemon.sh("p", "a", "curl -s -o /dev/null -w '%{http_code}' 127.0.0.1:65080/v1/me")).toBe(
      "200",
    );
    const room = await expose({ port: 65_080, visibility: "public" });
    expect(room.record.listening).toBe(false);
    expect(await (await room.fetch("v1/me")).json()).toMatchObject({ status: 502, code: "port_not_listening" });
    await unexpose(65_080);
  });

  test("after a crash of the daemon a port is exposed again with the same label and token", async () => {
    const answer = await port.fetch("events");
    const broken = expect(answer.text()).rejects.toThrow();
    await guests.daemon.restart("SIGKILL");
    await broken;
    expect((await port.fetch("")).status).toBe(200);
    const again = await guests.daemon.ok("POST", `/v1/rooms/${SANDBOX}/ports`, { port: 8000 });
    expect([again.token, new URL(again.path_url).pathname]).toEqual([port.record.token, new URL(port.url).pathname]);
  });

  test("an unexposed port is disconnected, and exposed again it has another URL and token", async () => {
    const short = await expose({ port: 8000 });
    const [events, socket] = [await short.fetch("events"), await short.socket("ws")];
    await unexpose(8000);
    await expect(events.text()).rejects.toThrow();
    expect(await socket.closed).toMatchObject({ code: 1001, reason: expect.stringContaining("exposed") });
    expect(await (await short.fetch("")).json()).toMatchObject({ status: 404, code: "port_not_exposed" });
    port = await expose({ port: 8000 });
    expect(port.record.listening).toBe(true);
    expect([port.url === short.url, port.record.token === short.record.token]).toEqual([false, false]);
    expect((await port.fetch("", { headers: short.token })).status).toBe(401);
    expect((await port.fetch("")).status).toBe(200);
  });

  test("an expired port is disconnected", async () => {
    await unexpose(8000);
    const short = await expose({ port: 8000, expires_in_seconds: 3 });
    const events = await short.fetch("events");
    expect(events.status).toBe(200);
    await expect(events.text()).rejects.toThrow();
    expect((await short.fetch("")).status).toBe(404);
    const { items } = await guests.daemon.ok("GET", "/v1/rooms/p/audit?event=port.expired");
    expect(items).toMatchObject([{ details: { port: 8000 }, agent_id: "a" }]);
    port = await expose({ port: 8000 });
  });

  test("standby disconnects clients and keeps ports exposed; the end of the sandbox ends both", async () => {
    const { daemon } = guests;
    await daemon.ok("PATCH", `/v1/rooms/${SANDBOX}`, { lifecycle: { wake_on: [] } });
    const socket = await port.socket("ws");
    await daemon.ok("POST", `/v1/rooms/${SANDBOX}/standby`);
    expect(await socket.closed).toMatchObject({ code: 1001, reason: expect.stringMatching(/paus/) });
    expect(await (await port.fetch("")).json()).toMatchObject({ status: 502, code: "guest_unreachable" });
    expect((await daemon.ok("GET", `/v1/rooms/${SANDBOX}`)).ports).toMatchObject([{ port: 8000 }]);
    await daemon.ok("POST", `/v1/rooms/${SANDBOX}/resume`);
    expect((await port.fetch("")).status).toBe(200);
    const last = await port.socket("ws");
    await daemon.sh("p", "a", "sh -c 'sleep 0.2; echo c >/proc/sysrq-trigger' >/dev/null 2>&1 &");
    await untilState(daemon, "p", "a", "failed");
    // Whichever is heard of first, the guest's end or that of its connections.
    expect([1001, 1011]).toContain((await last.closed).code);
    await until("the port is closed", async () => (await port.fetch("")).status === 404);
    const { items } = await daemon.ok("GET", "/v1/rooms/p/audit?event=port.closed");
    expect(items).toMatchObject([{ details: { port: 8000, reason: expect.stringContaining("failed") } }]);
  });
});

function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** The value that has not changed for a while. */
async function untilStill(look: () => Promise<number>): Promise<number> {
  let [seen, since] = [await look(), performance.now()];
  return await until("the transfer is stalled", async () => {
    const now = await look();
    if (now !== seen) [seen, since] = [now, performance.now()];
    return performance.now() - since > 500 && seen;
  });
}

async function textOf(socket: Socket): Promise<string> {
  let text = "";
  socket.on("data", (chunk) => {
    text += chunk;
  });
  const closed = new Promise((resolve) => socket.once("close", resolve));
  socket.resume();
  await Promise.race([closed, until("the response has a body", () => /\r\n\r\n[\s\S]/.test(text))]);
  socket.destroy();
  return text;
}
