/** Calls about files of a sandbox, with an agent on this host: their results, errors and records. */
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeEach, expect, test } from "vitest";
import { UnkeptEffects } from "../../../../daemon/core/call/call-effects.ts";
import { type Caller, NO_TRANSFER, trialCall } from "../../../../daemon/core/call/operation.ts";
import { ServiceError } from "../../../../daemon/core/service-error.ts";
import type { SandboxDeps } from "../../../../daemon/domain/sandboxes/deps.ts";
import { makeFiles } from "../../../../daemon/domain/sandboxes/files/index.ts";
import type { Supervisors } from "../../../../daemon/domain/sandboxes/lifecycle/supervisors.ts";
import type { Waking } from "../../../../daemon/domain/sandboxes/lifecycle/waking.ts";
import { fileMethods } from "../../../../guest-agent/files/methods.ts";
import { until } from "../../../harness/guests.ts";
import { linkedGuest } from "../../guest-agent/linked-guest.ts";

const top = mkdtempSync(join(tmpdir(), "roomd-file-calls-"));
afterAll(() => rmSync(top, { recursive: true }));
let dir = top;
let made = 0;
beforeEach(() => {
  dir = join(top, `t${++made}`);
  mkdirSync(dir);
});

/** How many keep the sandbox in use. */
let used = 0;
function callsOver(methods: Parameters<typeof linkedGuest>[0]) {
  const { link } = linkedGuest(methods);
  const use = async <T>(_: string, work: () => Promise<T>): Promise<T> => {
    used++;
    return await work().finally(() => used--);
  };
  const supervisors = { get: () => ({ link: async () => link }), use } as unknown as Supervisors;
  const waking = { requireAwake: async () => {} } as unknown as Waking;
  const { operations, stop } = makeFiles({ driveMode: () => "open" } as unknown as SandboxDeps, supervisors, waking);
  const target = { room: {}, row: { sandbox_id: "sbx_1", org_id: "org_1" }, isLookedAt: false };
  const run = async (name: string, input: object, transfer: object = {}, call = trialCall({} as Caller)) => {
    const bound = operations.find(({ operation }) => operation.name === `sandbox_file_${name}`);
    if (!bound) throw new Error(`no operation ${name}`);
    const [broken] = await bound.rules(input, target, []);
    if (broken) throw new ServiceError(broken.code as "invalid_path");
    return { ...(await bound.run(call, input, target, { ...NO_TRANSFER, ...transfer })), audit: call.audit };
  };
  return { run, stop };
}

const { run, stop } = callsOver(fileMethods({ holds: () => false, answers: async () => true }));
const raw = (name: string) => join(dir, name).slice(1);
const put = (name: string, data: string, more: object = {}, transfer: object = {}) =>
  run("put", { path: raw(name), ...more }, { body: new Response(data).body, ...transfer });
const textOf = async (bytes: { stream: ReadableStream<Uint8Array> } | undefined) =>
  await new Response(bytes?.stream).text();
const codeOf = (promise: Promise<unknown>) =>
  promise.then(
    () => "none",
    (error: unknown) => (error instanceof ServiceError ? error.code : String(error)),
  );

test("a file is written, described and recorded with its digest, and read whole or in part", async () => {
  const sha256 = createHash("sha256").update("0123456789").digest("hex");
  const written = await put("a/f", "0123456789", { mode: "0600", owner: "3:4" });
  const path = join(dir, "a/f");
  expect(written).toMatchObject({
    outcome: "created",
    body: { path, size_bytes: 10, sha256, mode: "0600", uid: 3, gid: 4 },
  });
  expect(written.audit.details).toEqual({ path, size_bytes: 10, sha256 });
  const part = await run("get", { path: raw("a/f") }, { range: "bytes=-3" });
  expect(part.bytes).toMatchObject({ offset: 7, length: 3, size_bytes: 10, partial: true });
  expect(await textOf(part.bytes)).toBe("789");
  const etag = part.bytes?.etag ?? "";
  expect(await run("get", { path: raw("a/f") }, { if_none_match: etag })).toMatchObject({ unchanged: { etag } });
  expect(await codeOf(run("get", { path: raw("a/f") }, { range: "bytes=10-" }))).toBe("range_not_satisfiable");
  expect(await codeOf(put("a/f", "x", {}, { if_none_match: "*" }))).toBe("precondition_failed");
  expect(await codeOf(put("a/none", "x", {}, { if_match: "*" }))).toBe("precondition_failed");
  expect(await put("a/f", "new", {}, { if_match: etag })).toMatchObject({
    outcome: "replaced",
    body: { mode: "0600" },
  });
  expect(await codeOf(put("a/f", "newer", {}, { if_match: etag }))).toBe("precondition_failed");
  await until("the sandbox is not in use", () => used === 0);
});

test("a sandbox is in use while a file of it is read", async () => {
  await put("large", "x".repeat(1_000_000));
  const { bytes } = await run("get", { path: raw("large") });
  expect(used).toBe(1);
  await bytes?.stream.cancel();
  await until("the sandbox is not in use", () => used === 0);
});

test("errors have the codes of the drive's calls", async () => {
  writeFileSync(join(dir, "file"), "");
  mkdirSync(join(dir, "full/in"), { recursive: true });
  symlinkSync("nowhere", join(dir, "dangling"));
  const at = (name: string) => join(dir, name);
  expect(await codeOf(run("get", { path: raw("none") }))).toBe("path_not_found");
  expect(await codeOf(run("get", { path: raw("full") }))).toBe("is_directory");
  expect(await codeOf(run("get", { path: "dev/zero" }))).toBe("invalid_path");
  expect(await codeOf(put("file/below", "x"))).toBe("invalid_path");
  expect(await codeOf(put("dangling", "x"))).toBe("invalid_path");
  expect(await codeOf(put("full", "x"))).toBe("is_directory");
  expect(await codeOf(put("file", "x", { overwrite: false }))).toBe("already_exists");
  expect(await codeOf(put("x", "x", { owner: "no-such-user" }))).toBe("validation_failed");
  expect(await codeOf(run("list", { path: at("file") }))).toBe("invalid_path");
  expect(await codeOf(run("list", { path: at("none") }))).toBe("path_not_found");
  expect(await codeOf(run("delete", { path: at("full") }))).toBe("not_empty");
  expect(await codeOf(run("delete", { path: "/" }))).toBe("invalid_path");
  expect(await codeOf(run("mkdir", { path: at("file") }))).toBe("already_exists");
  expect(await codeOf(run("move", { from: at("file"), to: at("full") }))).toBe("already_exists");
  for (const path of ["relative", "/a/../b", "/a\0b", `/${"n".repeat(256)}`]) {
    expect(await codeOf(run("stat", { path }))).toBe("invalid_path");
  }
});

test("an agent built before these calls gets an error with a remedy", async () => {
  const old = callsOver({});
  const refused = await old.run("stat", { path: "/" }).catch((error: unknown) => error as ServiceError);
  expect(refused).toMatchObject({
    code: "guest_unreachable",
    options: { hint: expect.stringContaining("template build") },
  });
});

test("only the shape of a lying guest's replies is trusted", async () => {
  const lies = callsOver({
    file_stat: (stream) => stream.finish({ entry: { type: "ghost" } }),
    file_list: async (stream) => {
      const line = JSON.stringify({ path: "/a", type: "file", size_bytes: -1, mode: 1e9, modified_at_ms: 1e300 });
      await stream.write(3, Buffer.from(`${line}\n`.repeat(5)));
      stream.endChannel(3);
      stream.finish({ more: true });
    },
    file_read: (stream) => {
      stream.say({ type: "opened", entry: { path: "/a", type: "file", size_bytes: 5, version: "1", identity: "1" } });
      stream.hear(async () => {
        await stream.write(1, Buffer.from("more than five"));
        stream.finish(null);
      });
    },
    file_write: (stream) => stream.say({ type: "writable" }),
  });
  expect(await codeOf(lies.run("stat", { path: "/a" }))).toBe("guest_unreachable");
  expect(await codeOf(lies.run("list", { path: "/", limit: 4 }))).toBe("guest_unreachable");
  const { body } = await lies.run("list", { path: "/", limit: 5 });
  expect(body).toMatchObject({ items: Array(5).fill({ path: "/a", size_bytes: 0, mode: "0000" }) });
  const { bytes } = await lies.run("get", { path: "a" });
  await expect(textOf(bytes)).rejects.toThrow();
});

test("a page names the start of the next one, also below directories", async () => {
  for (const name of ["a/1", "a/2", "b/c/3", "d"]) {
    mkdirSync(join(dir, name, ".."), { recursive: true });
    writeFileSync(join(dir, name), "");
  }
  const names: string[] = [];
  for (let cursor: string | undefined; ; ) {
    const { body } = await run("list", { path: dir, recursive: true, limit: 2, ...(cursor && { cursor }) });
    const { items, next_cursor } = body as { items: { path: string }[]; next_cursor: string | null };
    names.push(...items.map(({ path }) => path.slice(dir.length + 1)));
    if (next_cursor === null) break;
    cursor = next_cursor;
  }
  expect(names).toEqual(["a", "a/1", "a/2", "b", "b/c", "b/c/3", "d"]);
  expect(await codeOf(run("list", { path: dir, cursor: "bm90aGluZw.abc" }))).toBe("invalid_cursor");
});

test("a move made before the end of its daemon is not repeated", async () => {
  writeFileSync(join(dir, "from"), "x");
  const input = { from: join(dir, "from"), to: join(dir, "to") };
  let recorded: Record<string, string | number> | undefined;
  class Kept extends UnkeptEffects {
    override async noteFirst(started: Record<string, string | number>): Promise<void> {
      recorded = started;
    }
  }
  await run("move", input, {}, { ...trialCall({} as Caller), work: new Kept() });
  class Again extends UnkeptEffects {
    override readonly begun = recorded;
  }
  const again = await run("move", input, {}, { ...trialCall({} as Caller), work: new Again() });
  expect(again).toMatchObject({ outcome: "ok", body: { path: input.to } });
  expect(await codeOf(run("move", input))).toBe("path_not_found");
});

test("a watch reports changes with a cursor to continue, and ends with the daemon", async () => {
  const events: { type: string; path: string; cursor: string; code?: string }[] = [];
  const follow = async (after?: string) => {
    const { events: reply } = await run("watch", { path: dir, ...(after && { after }) });
    const over = (async () => {
      for await (const some of reply?.events ?? []) events.push(...(some.map(({ data }) => data) as typeof events));
    })();
    return { over, cancel: () => reply?.cancel() };
  };
  const first = await follow();
  writeFileSync(join(dir, "one"), "");
  await until("the event for one is received", () => events.some(({ path }) => path === join(dir, "one")));
  expect(events[0]).toMatchObject({ type: "watching", path: dir });
  first.cancel();
  await first.over;
  const { cursor } = events.findLast(({ cursor }) => cursor) ?? {};
  events.length = 0;
  writeFileSync(join(dir, "two"), "");
  const second = await follow(cursor);
  await until("the event for two is received", () => events.some(({ path }) => path === join(dir, "two")));
  expect(events.some(({ path }) => path === join(dir, "one"))).toBe(false);
  stop();
  await second.over;
  expect(events.at(-1)).toMatchObject({ type: "error", code: "shutting_down" });
  expect(await codeOf(run("watch", { path: dir, after: "unknown.7" }))).toBe("history_gone");
});
