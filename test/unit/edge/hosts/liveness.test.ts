/** A host that is gone without notice, and one that is slow. */
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import { expect, test } from "vitest";
import { ServiceError } from "../../../../daemon/core/service-error.ts";
import { forwardJson } from "../../../../daemon/edge/hosts/forward.ts";
import { scratch, until } from "../tls-fixture.ts";
import { ABOUT, clientOf, descriptors, listen, members } from "./fixture.ts";

const endSignal = new AbortController().signal;

/** An owner in a separate process, which can be stopped. */
const SERVER = `
const [, , cert, key, member] = process.argv;
const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  idleTimeout: 0,
  tls: { cert: Bun.file(cert), key: Bun.file(key), ca: Bun.file(member), requestCert: true, rejectUnauthorized: true },
  fetch: async (request) => {
    await Bun.sleep(Number(new URL(request.url).searchParams.get("ms")));
    return new Response("done");
  },
});
console.log(server.port);
`;

test("a caller at a frozen host gets an error, and at a slow host a response", async () => {
  using made = await members("owner", "entry");
  const [owner, member] = made;
  using directory = scratch();
  const file = (name: string, text: string) => {
    writeFileSync(`${directory.path}/${name}`, text);
    return `${directory.path}/${name}`;
  };
  const files = [file("c", owner.own.cert), file("k", owner.own.key), file("m", member.own.cert)];
  const child = spawn(process.execPath, [file("server.ts", SERVER), ...files], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const port = await new Promise<string>((resolve) => createInterface({ input: child.stdout }).once("line", resolve));
  const reached = { host_id: "owner", address: `127.0.0.1:${port}`, certificate: owner.own.cert };
  using client = clientOf(member);
  const ask = (ms: number) =>
    forwardJson(
      client,
      reached,
      { method: "POST", path: "/x", query: { ms: String(ms) }, fields: {} },
      ABOUT,
      endSignal,
    );
  try {
    expect((await ask(2500)).status).toBe(200);
    expect((await ask(0)).status).toBe(200);
    child.kill("SIGSTOP");
    const startedAt = performance.now();
    const error = await ask(0).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ServiceError);
    expect((error as ServiceError).code).toBe("host_unreachable");
    expect(performance.now() - startedAt).toBeLessThan(5000);
    child.kill("SIGCONT");
    expect((await ask(0)).status).toBe(200);
  } finally {
    child.kill("SIGKILL");
  }
});

test("a host that accepts no connections costs few descriptors, for any number of callers", async () => {
  using made = await members("owner", "entry");
  const [owner, member] = made;
  // When the backlog of connections is full, the system answers no others.
  const program = [
    "import socket, time",
    "taken = socket.socket()",
    "taken.bind(('127.0.0.1', 0))",
    "taken.listen(0)",
    "print(taken.getsockname()[1], flush=True)",
    "time.sleep(60)",
  ].join("\n");
  const child = spawn("python3", ["-c", program], { stdio: ["ignore", "pipe", "inherit"] });
  const port = Number(
    await new Promise<string>((resolve) => createInterface({ input: child.stdout }).once("line", resolve)),
  );
  const waiting = Array.from({ length: 4 }, () => connect(port, "127.0.0.1").on("error", () => {}));
  await until(() => waiting.some((each) => !each.connecting));
  using client = clientOf(member);
  const reached = { host_id: "owner", address: `127.0.0.1:${port}`, certificate: owner.own.cert };
  const before = descriptors();
  const codes = new Set<unknown>();
  for (let round = 0; round < 3; round++) {
    const startedAt = performance.now();
    const requests = Array.from({ length: 300 }, () =>
      forwardJson(client, reached, { method: "GET", path: "/x" }, ABOUT, endSignal).catch(
        (error: ServiceError) => error.code,
      ),
    );
    for (const code of await Promise.all(requests)) codes.add(code);
    expect(performance.now() - startedAt).toBeLessThan(2000);
  }
  expect([...codes]).toEqual(["host_unreachable"]);
  expect(descriptors() - before).toBeLessThan(80);
  for (const each of waiting) each.destroy();
  child.kill();
});

test("a slow call is not aborted while the host responds to others, nor during an orderly stop", async () => {
  using made = await members("owner", "entry");
  const [owner, member] = made;
  const { reached, listener } = listen(owner, [member], async (request) => {
    if (request.url.endsWith("/slow")) await Bun.sleep(3500);
    return new Response("done");
  });
  using client = clientOf(member);
  const ask = (path: string) => forwardJson(client, reached, { method: "GET", path }, ABOUT, endSignal);
  const slow = ask("/slow");
  for (let n = 0; n < 10; n++) {
    expect((await ask("/")).status).toBe(200);
    await Bun.sleep(150);
  }
  // No check of the host was made: one connection for each of the two.
  expect(client.opened).toBe(2);
  // From here on connections are refused, and requests in progress continue.
  const stopped = listener.stop(10_000);
  expect((await slow).status).toBe(200);
  await stopped;
});
