/** Exposed ports of another host: the look-up of a label's host, and forwarding through the entry host. */
import { expect, test } from "vitest";
import type { Host } from "../../../../daemon/cluster/directory.ts";
import { makeLog } from "../../../../daemon/core/log.ts";
import { ServiceError } from "../../../../daemon/core/service-error.ts";
import type { OpenPort } from "../../../../daemon/domain/ports/connections.ts";
import type { Gate } from "../../../../daemon/domain/ports/gate.ts";
import { Connection } from "../../../../daemon/edge/hosts/connection.ts";
import { forwardJson } from "../../../../daemon/edge/hosts/forward.ts";
import { Locator, PORTS } from "../../../../daemon/edge/hosts/locator.ts";
import { PeerClient } from "../../../../daemon/edge/hosts/room-transfer.ts";
import { type HttpDeps, makeHttpServer } from "../../../../daemon/edge/http/server.ts";
import { Admission } from "../../../../daemon/edge/pipeline/admission.ts";
import { newId } from "../../../../shared/ids.ts";
import type { Json } from "../../../harness/json.ts";
import { clientOf, listen, type Member, members } from "./fixture.ts";

const WEB = "web-4kx9";

/** A server like one in a guest, which returns its request. */
function guest() {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    websocket: { message: (socket, text) => void socket.send(`heard ${text}`) },
    fetch: async (request, server) => {
      if (request.headers.has("upgrade") && server.upgrade(request)) return undefined as never;
      const { pathname, search } = new URL(request.url);
      const headers = Object.fromEntries(request.headers);
      return Response.json({ method: request.method, path: pathname + search, headers, body: await request.text() });
    },
  });
  return { port: server.port as number, stop: () => server.stop(true) };
}

async function connected(port: number, first: Uint8Array): Promise<OpenPort> {
  const made = Promise.withResolvers<Connection>();
  await Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: {
      open: (socket) => {
        const connection = new Connection(socket);
        Object.assign(socket, { data: connection });
        made.resolve(connection);
      },
      data: (socket, bytes) => (socket.data as unknown as Connection).hear(bytes),
      drain: (socket) => (socket.data as unknown as Connection).drained(),
      close: (socket) => (socket.data as unknown as Connection).ends(),
    },
  });
  const line = (await made.promise).begin();
  await line.write(first);
  return line;
}

/** Those ports alone, all of them public. */
function gateOf(labels: readonly string[], port: number, lookups: string[] = []): Gate {
  const has = (label: string) => {
    lookups.push(label);
    return labels.includes(label);
  };
  return {
    urls: () => ({ base_url: "http://127.0.0.1", domain: "ports.example" }),
    has,
    find: (label: string) => {
      if (!has(label)) throw new ServiceError("port_not_exposed");
      return { label, port: 8000, visibility: "public" };
    },
    admit: () => {},
    open: (_: unknown, first: Uint8Array) => connected(port, first),
  } as unknown as Gate;
}

function door(host: string, ports: Gate, more: Partial<HttpDeps> = {}) {
  const log = makeLog("error", () => {});
  const deps = {
    operations: [],
    road: { begin: new Admission() },
    ports,
    mcp: null,
    web: null,
    host,
    others: null,
    labels: null,
    ssh: null,
    log,
    ...more,
  };
  const url = "http://127.0.0.1:8080";
  return makeHttpServer(deps as unknown as HttpDeps, {
    hostname: "127.0.0.1",
    port: 0,
    url,
    tls: null,
    trusted_proxies: [],
  });
}

async function twoHosts() {
  const made = await members("owner", "entry");
  const [owner, member] = made;
  const server = guest();
  const lookups: string[] = [];
  /** Host-only operations that were carried out. */
  const peered: string[] = [];
  const does = (operation: string) => async () => {
    peered.push(operation);
    return {};
  };
  const peers = { receive: does("receive"), settle: does("settle"), fits: does("fits") };
  const there = door("owner", gateOf([WEB], server.port, lookups), { peers: peers as never });
  const inside = there.serveMembers({ hostname: "127.0.0.1", port: 0 }, { own: owner.own, members: [member.own.cert] });
  const reached = { host_id: "owner", address: `127.0.0.1:${inside.url.port}`, certificate: owner.own.cert } as Host;
  const client = clientOf(member);
  const labels = new Locator({ question: PORTS, client, own: "entry", others: () => [reached] });
  const here = door("entry", gateOf([], 0), { others: client, labels });
  return {
    url: here.url,
    looked: lookups,
    peered,
    client,
    reached,
    stopOwner: () => inside.stop(0),
    [Symbol.asyncDispose]: async () => {
      await Promise.all([here.stop(0), there.stop(0), inside.stop(0)]);
      client.close();
      server.stop();
      made[Symbol.dispose]();
    },
  };
}

test("a request passes unchanged, and the server receives no headers of hosts", async () => {
  await using hosts = await twoHosts();
  const at = (path: string, init?: RequestInit) => fetch(new URL(path, hosts.url), init);
  const headers = { "x-request-id": "my own", "x-roomd-hop": "1", authorization: "Basic app" };
  const answer = await at(`/p/${WEB}/a/b?c=d`, { method: "POST", body: "hello", headers });
  expect([answer.status, answer.headers.get("x-roomd-host")]).toEqual([200, "owner"]);
  const received = (await answer.json()) as Json;
  expect(received).toMatchObject({ method: "POST", path: "/a/b?c=d", body: "hello" });
  expect(received.headers).toMatchObject({
    authorization: "Basic app",
    "x-request-id": "my own",
    "x-forwarded-for": "127.0.0.1",
  });
  expect(received.headers["x-forwarded-prefix"]).toBe(`/p/${WEB}`);
  expect(Object.keys(received.headers).filter((name) => name.startsWith("x-roomd"))).toEqual([]);
  const large = "x".repeat(2_000_000);
  const put = (await (await at(`/p/${WEB}/`, { method: "PUT", body: large })).json()) as Json;
  expect(put.body).toBe(large);
  const byHost = await at("/-/ports?labels=a", { headers: { host: `${WEB}.ports.example` } });
  expect(await byHost.json()).toMatchObject({ path: "/-/ports?labels=a" });
  expect((await at(`/p/${WEB}`, { redirect: "manual" })).headers.get("location")).toBe(`/p/${WEB}/`);
  // A client that is no host gets no information about existing labels.
  expect((await at(`/-/ports?labels=${WEB}`)).status).not.toBe(200);
});

test("paths of calls between hosts reach a port's server on a port's name", async () => {
  await using hosts = await twoHosts();
  const room = `/hosts/rooms/${newId("rom")}`;
  for (const path of [room, `${room}/fits`, `${room}/settle`]) {
    const init = { method: "POST", body: "{}" };
    const headers = { host: `${WEB}.ports.example`, "x-roomd-hop": "" };
    expect(await (await fetch(new URL(path, hosts.url), { ...init, headers })).json()).toMatchObject({ path });
    expect((await fetch(new URL(path, hosts.url), init)).status).toBe(404);
    // As if it were carried for a client.
    const about = { ip: null, request_id: null, own: "entry" };
    const request = { method: "POST", path, fields: {} };
    const carried = await forwardJson(hosts.client, hosts.reached, request, about, AbortSignal.timeout(5000));
    expect(carried.status).toBe(404);
  }
  expect(hosts.peered).toEqual([]);
  await new PeerClient(hosts.client).settle(hosts.reached, newId("rom"), AbortSignal.timeout(5000));
  expect(hosts.peered).toEqual(["settle"]);
});

test("a WebSocket is forwarded", async () => {
  await using hosts = await twoHosts();
  const received = Promise.withResolvers<unknown>();
  const socket = new WebSocket(new URL(`/p/${WEB}/ws`, hosts.url).href.replace("http", "ws"));
  socket.onopen = () => socket.send("you");
  socket.onmessage = ({ data }) => received.resolve(data);
  socket.onerror = () => received.reject(new Error("it failed"));
  expect(await received.promise).toBe("heard you");
  socket.close();
});

test("a port is unreachable while its host is down, and not unknown", async () => {
  await using hosts = await twoHosts();
  expect((await fetch(new URL("/p/nobody-x/", hosts.url))).status).toBe(404);
  await hosts.stopOwner();
  const answer = await fetch(new URL("/p/other-y/", hosts.url));
  expect([answer.status, ((await answer.json()) as Json).code]).toEqual([503, "host_unreachable"]);
});

test("many unknown labels cause few queries, and an invalid label none", async () => {
  using made = await members("owner", "entry");
  const [owner, member] = made;
  const questions: string[][] = [];
  const { reached, stop } = listen(owner as Member, [member as Member], (request) => {
    const labels = (new URL(request.url).searchParams.get("labels") ?? "").split(",");
    questions.push(labels);
    return Response.json({ labels: labels.filter((label) => label === "l-7") });
  });
  using client = clientOf(member);
  const labels = new Locator({ question: PORTS, client, own: "entry", others: () => [reached as Host] });
  const located = await Promise.all(Array.from({ length: 500 }, (_, index) => labels.hostOf(`l-${index}`)));
  expect(located.flatMap((host, index) => (host ? [index] : []))).toEqual([7]);
  expect(questions.length).toBeLessThanOrEqual(6);
  const before = questions.length;
  await Promise.all([
    labels.hostOf("l-7"),
    labels.hostOf("l-8"),
    labels.hostOf("%00"),
    labels.hostOf("A"),
    labels.hostOf(""),
  ]);
  expect(questions.length).toBe(before);
  const flood = await Promise.allSettled(Array.from({ length: 1500 }, (_, index) => labels.hostOf(`m-${index}`)));
  const refused = flood.flatMap((each) => (each.status === "rejected" ? [each.reason.code] : []));
  expect(refused).toHaveLength(500);
  expect(new Set(refused)).toEqual(new Set(["rate_limited"]));
  await stop();
});
