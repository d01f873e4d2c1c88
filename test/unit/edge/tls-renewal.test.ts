import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { connect } from "node:tls";
import { type AnyElysia, Elysia } from "elysia";
import { expect, test } from "vitest";
import type { Certificate } from "../../../daemon/core/config/certificate.ts";
import { watchCertificate } from "../../../daemon/edge/http/tls-watch.ts";
import { type Listener, openListener, type ServeOptions } from "../../../daemon/edge/listener.ts";
import { bytesOf, configOf, keptLog, newCertificate, scratch, shownAt, until } from "./tls-fixture.ts";

const ANY = { hostname: "127.0.0.1", port: 0 };
const insecure = { tls: { rejectUnauthorized: false } };

function listen(certificate: Certificate | null, address = ANY): Listener & { port: number } {
  const app: AnyElysia = new Elysia({ serve: { idleTimeout: 0 } })
    .get("/", () => "hello")
    .get("/ip", ({ request }): string => app.server?.requestIP(request)?.address ?? "none")
    .get("/slow", async function* () {
      for (let n = 0; n < 5; n++) {
        yield `${n} `;
        await Bun.sleep(100);
      }
    })
    .ws("/ws", { message: (socket, message) => void socket.send(message) });
  const listener = openListener(address, certificate, (options: ServeOptions) => {
    app.listen(options);
    if (!app.server) throw new Error("not started");
    return app.server;
  });
  return Object.assign(listener, { port: Number(listener.url.port) });
}

test("serves a new certificate while open connections continue", async () => {
  using directory = scratch();
  const [a, b] = [await newCertificate(directory.path), await newCertificate(directory.path)];
  const listener = listen(a);
  const at = `https://127.0.0.1:${listener.port}`;
  expect(await shownAt(listener.port)).toBe(bytesOf(a));

  const slow = await fetch(`${at}/slow`, insecure);
  const opened = connect({ host: "127.0.0.1", port: listener.port, rejectUnauthorized: false });
  const socket = new WebSocket(`${at.replace("https", "wss")}/ws`, insecure);
  const received = Promise.withResolvers<string>();
  socket.onmessage = ({ data }) => received.resolve(String(data));
  await new Promise((resolve) => socket.addEventListener("open", resolve));

  listener.use(b, "goes on");

  // Every new connection, not only some: the old server has left the port.
  for (let n = 0; n < 20; n++) expect(await shownAt(listener.port)).toBe(bytesOf(b));
  await expect(fetch(at, { tls: { ca: a.cert } })).rejects.toThrow();
  expect(await (await fetch(`${at}/ip`, { tls: { ca: b.cert } })).text()).toBe("127.0.0.1");
  expect(await slow.text()).toContain("4 ");
  socket.send("still here");
  expect(await received.promise).toBe("still here");
  opened.destroy();
  socket.close();
  await listener.stop(1000);
  await expect(shownAt(listener.port)).rejects.toThrow();
});

test("keeps the old certificate if Bun rejects the new one", async () => {
  using directory = scratch();
  const [a, b] = [await newCertificate(directory.path), await newCertificate(directory.path)];
  const listener = listen(a);
  expect(() => listener.use({ cert: b.cert, key: a.key }, "goes on")).toThrow();
  expect(await shownAt(listener.port)).toBe(bytesOf(a));
  await listener.stop(0);
});

test("a port in use is rejected, even if it could be shared", async () => {
  using directory = scratch();
  const a = await newCertificate(directory.path);
  for (const first of [a, null]) {
    const listener = listen(first);
    for (const second of [a, null]) {
      expect(() => listen(second, { ...ANY, port: listener.port })).toThrow(
        expect.objectContaining({ code: "EADDRINUSE" }),
      );
    }
    await listener.stop(0);
  }
});

test("stop closes the connections that do not end on their own", async () => {
  const listener = listen(null);
  const slow = await fetch(`http://127.0.0.1:${listener.port}/slow`);
  await listener.stop(50);
  await expect(slow.text()).rejects.toThrow();
});

/** Watches a pair at `cert` and `key`, and returns the reported certificates. */
function watching(cert: string, key: string, first: Certificate) {
  const seen: Certificate[] = [];
  const { lines, log } = keptLog();
  const config = configOf({ ROOMD_TLS_CERT: cert, ROOMD_TLS_KEY: key });
  const watcher = watchCertificate({ config, paths: { tls: "/unused" }, log }, first, (next) => void seen.push(next));
  return { seen, lines, [Symbol.dispose]: () => watcher.close() };
}

test("notices a pair written in place, once both halves are complete", async () => {
  using directory = scratch();
  const [a, b] = [await newCertificate(directory.path), await newCertificate(directory.path)];
  const [cert, key] = [join(directory.path, "c.pem"), join(directory.path, "k.pem")];
  writeFileSync(cert, a.cert);
  writeFileSync(key, a.key);
  using watched = watching(cert, key, a);
  await Bun.sleep(20);
  writeFileSync(cert, b.cert);
  await until(() => watched.lines.some((line) => line.includes("not the key of the first certificate")));
  expect(watched.seen).toEqual([]);
  writeFileSync(key, b.key);
  await until(() => watched.seen.length > 0);
  rmSync(key);
  await until(() => watched.lines.some((line) => line.includes("no such file")));
  writeFileSync(key, b.key);
  await Bun.sleep(50);
  expect(watched.seen).toEqual([b]);
});

test("notices a replacement from before the start of the watch", async () => {
  using directory = scratch();
  const [a, b] = [await newCertificate(directory.path), await newCertificate(directory.path)];
  const [cert, key] = [join(directory.path, "c.pem"), join(directory.path, "k.pem")];
  writeFileSync(cert, b.cert);
  writeFileSync(key, b.key);
  using watched = watching(cert, key, a);
  await until(() => watched.seen.length > 0);
  expect(watched.seen).toEqual([b]);
});

test("notices moved links, as made by certbot and Kubernetes, repeatedly", async () => {
  using directory = scratch();
  const certificates = await Promise.all([1, 2, 3].map(() => newCertificate(directory.path)));
  const [first, ...later] = certificates;
  if (!first) throw new Error("no certificate");
  const live = join(directory.path, "live");
  mkdirSync(join(directory.path, "archive"));
  mkdirSync(live);
  const point = (name: string, target: string) => {
    symlinkSync(target, join(live, `${name}.new`));
    renameSync(join(live, `${name}.new`), join(live, name));
  };
  const certbot = (n: number, { cert, key }: Certificate) => {
    for (const [name, text] of Object.entries({ cert, key })) {
      writeFileSync(join(directory.path, "archive", `${name}${n}.pem`), text);
      point(`${name}.pem`, `../archive/${name}${n}.pem`);
    }
  };
  const kubernetes = (n: number, { cert, key }: Certificate) => {
    mkdirSync(join(live, `..v${n}`));
    for (const [name, text] of Object.entries({ cert, key })) writeFileSync(join(live, `..v${n}`, name), text);
    point("..data", `..v${n}`);
  };
  for (const name of ["cert", "key"]) symlinkSync(`..data/${name}`, join(live, name));
  for (const [replace, suffix] of [
    [certbot, ".pem"],
    [kubernetes, ""],
  ] as const) {
    replace(0, first);
    using watched = watching(join(live, `cert${suffix}`), join(live, `key${suffix}`), first);
    await Bun.sleep(20);
    for (const [n, next] of later.entries()) {
      replace(n + 1, next);
      await until(() => watched.seen.length === n + 1);
    }
    expect(watched.seen).toEqual(later);
  }
});

test("an unusable certificate is logged and retried when it changes", async () => {
  using directory = scratch();
  const [a, b] = [await newCertificate(directory.path), await newCertificate(directory.path)];
  const [cert, key] = [join(directory.path, "c.pem"), join(directory.path, "k.pem")];
  writeFileSync(cert, b.cert);
  writeFileSync(key, b.key);
  const { lines, log } = keptLog();
  let calls = 0;
  const config = configOf({ ROOMD_TLS_CERT: cert, ROOMD_TLS_KEY: key });
  const watcher = watchCertificate({ config, paths: { tls: "/unused" }, log }, a, () => {
    if (calls++ === 0) throw new Error("the server will not have it");
  });
  await until(() => lines.some((line) => line.includes("will not have it")));
  writeFileSync(key, `${b.key}\n`);
  await until(() => calls === 2);
  watcher.close();
});
