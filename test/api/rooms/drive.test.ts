/** The drive over HTTP: all of its calls, its headers, and the remains of a client that disconnects. */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Json, TestDaemon } from "../../harness/daemon.ts";
import { bearer, overSocket, until } from "../calls.ts";

const MIB = 1024 * 1024;
let daemon: TestDaemon;
let directory: string;
beforeAll(async () => {
  daemon = await TestDaemon.start({ env: { ROOMD_DRIVE_LIMIT_GIB: "1" } });
  directory = driveOf(await daemon.room("r"));
});
afterAll(() => daemon.stop());

const driveOf = (room: Json) => join(daemon.dataDir, "rooms", room.room_uid, "drive");
const sha256 = (bytes: string | Uint8Array) => createHash("sha256").update(bytes).digest("hex");
const at = (call: string) => `/v1/rooms/r/drive/${call}`;
const write = (body: Json) => daemon.api("POST", at("write"), body);
const codeOf = async (method: string, call: string, body?: unknown, headers?: Record<string, string>) =>
  (await daemon.problem(method, at(call), body, headers)).code;

/** A call on a file by its path; the response with its bytes untouched. */
const file = (path: string, init: RequestInit = {}) =>
  fetch(daemon.url + at(`files/${path}`), {
    ...init,
    headers: { ...bearer(daemon.apiKey), ...(init.headers as Record<string, string>) },
  });

describe("write and read", () => {
  test("create a file, replace it, and return its metadata", async () => {
    const made = await write({ path: "notes/a.txt", content: "héllo\n", mode: "600" });
    expect(made.status).toBe(201);
    expect(made.body).toEqual({
      path: "/notes/a.txt",
      guest_path: "/mnt/drive/notes/a.txt",
      size_bytes: 7,
      sha256: sha256("héllo\n"),
      mode: "0600",
      modified_at: expect.stringMatching(/Z$/),
      created: true,
    });
    expect(readFileSync(join(directory, "notes/a.txt"), "utf8")).toBe("héllo\n");
    const replaced = await write({
      path: "/mnt/drive/notes/a.txt",
      content_b64: Buffer.from([0, 255]).toString("base64"),
    });
    expect(replaced).toMatchObject({ status: 200, body: { path: "/notes/a.txt", size_bytes: 2, created: false } });

    const read = await daemon.ok("GET", at("read?path=/notes/a.txt"));
    expect(read).toMatchObject({ size_bytes: 2, offset: 0, length: 2, eof: true, content: null, content_b64: "AP8=" });
    expect(read.sha256).toBe(sha256(Uint8Array.of(0, 255)));
  });

  test("set the requested owner, also of directories created for the file", async () => {
    // A guest's users are mapped to a range that starts at the drive's own.
    const base = statSync(directory).uid;
    const ids = (path: string) => {
      const { uid, gid } = statSync(join(directory, path));
      return [uid - base, gid - base];
    };
    const asRoot = process.geteuid?.() === 0;
    expect((await write({ path: "for/agent/in.txt", content: "x", owner: "1000:1001" })).status).toBe(201);
    expect((await file("for/streamed?owner=1000", { method: "PUT", body: "x" })).status).toBe(201);
    expect((await daemon.api("POST", at("mkdir"), { path: "for/made", owner: "7:8" })).status).toBe(201);
    if (asRoot) {
      expect(["for", "for/agent", "for/agent/in.txt"].map(ids)).toEqual(Array(3).fill([1000, 1001]));
      expect([ids("for/streamed"), ids("for/made")]).toEqual([
        [1000, 1000],
        [7, 8],
      ]);
    }
    await write({ path: "for/agent/in.txt", content: "y", append: true, owner: "5:6" });
    if (asRoot) expect(ids("for/agent/in.txt")).toEqual([5, 6]);
    await write({ path: "for/agent/in.txt", content: "z", owner: "root" });
    if (asRoot) expect(ids("for/agent/in.txt")).toEqual([0, 0]);
    for (const owner of ["agent", "65536:0", "0:65536", "1000:users"]) {
      const refused = await daemon.problem("POST", at("write"), { path: "for/none", content: "x", owner });
      expect([refused.code, refused.errors[0]?.field]).toEqual(["validation_failed", "owner"]);
    }
  });

  test("append, and do not overwrite a change by another writer", async () => {
    await write({ path: "log", content: "one\n" });
    expect((await write({ path: "log", content: "two\n", append: true })).body.size_bytes).toBe(8);
    expect((await daemon.ok("GET", at("read?path=log"))).content).toBe("one\ntwo\n");
    const seen = sha256("one\ntwo\n");
    expect((await write({ path: "log", content: "x", if_match: sha256("older") })).body.code).toBe(
      "precondition_failed",
    );
    expect((await write({ path: "log", content: "x", if_match: seen })).status).toBe(200);
    expect((await write({ path: "log", content: "x", overwrite: false })).body.code).toBe("already_exists");
    expect((await write({ path: "none", content: "x", if_match: seen })).status).toBe(412);
  });

  test("read a part", async () => {
    await write({ path: "parts", content: "0123456789" });
    const part = (query: string) => daemon.ok("GET", at(`read?path=parts&${query}`));
    expect(await part("offset=2&length=3")).toMatchObject({
      content: "234",
      offset: 2,
      length: 3,
      eof: false,
      size_bytes: 10,
    });
    expect(await part("offset=8&length=100")).toMatchObject({ content: "89", length: 2, eof: true });
    expect(await part("offset=10")).toMatchObject({ content: "", length: 0, eof: true });
    expect(await daemon.problem("GET", at("read?path=parts&offset=11"))).toMatchObject({
      status: 416,
      code: "range_not_satisfiable",
      details: { size_bytes: 10 },
    });
    const raw = await daemon.api("GET", at("read?path=parts&format=raw&offset=4&length=2"));
    expect(raw.headers.get("content-type")).toBe("application/octet-stream");
    expect(raw.body).toBe("45");
  });

  test("accept at most 16 MiB as JSON", async () => {
    const content = "x".repeat(16 * MIB);
    expect((await write({ path: "large", content })).status).toBe(201);
    expect((await daemon.ok("GET", at("read?path=large"))).content_b64.length).toBe(Math.ceil((16 * MIB) / 3) * 4);
    expect(await write({ path: "larger", content: `${content}x` })).toMatchObject({
      status: 413,
      body: { code: "file_too_large", details: { max_bytes: 16 * MIB } },
    });
    expect(await write({ path: "larger", content: "x".repeat(24 * MIB) })).toMatchObject({
      status: 413,
      body: { code: "body_too_large" },
    });
    expect(readdirSync(directory)).not.toContain("larger");
  });

  test.each<[string, Json, string]>([
    ["no content", {}, "validation_failed"],
    ["both contents", { content: "x", content_b64: "eA==" }, "conflicting_fields"],
    ["invalid base64", { content_b64: "eA=" }, "validation_failed"],
    ["an invalid mode", { content: "x", mode: "999" }, "validation_failed"],
    ["a mode with setuid", { content: "x", mode: "4755" }, "validation_failed"],
    ["an unknown field", { content: "x", pth: "x" }, "unknown_field"],
  ])("refuse %s", async (_, body, code) => {
    expect(await codeOf("POST", "write", { path: "refused", ...body })).toBe(code);
    expect(readdirSync(directory)).not.toContain("refused");
  });

  test.each(["", "a/../b", "..", "/..", "a\0b", "x".repeat(4097), `${"n".repeat(256)}/a`, "/mnt/drive/../x"])(
    "refuse the path %.20j",
    async (path) => {
      expect(await daemon.problem("POST", at("write"), { path, content: "x" })).toMatchObject({
        status: 422,
        code: "invalid_path",
        errors: [{ field: "path" }],
      });
      expect(await codeOf("GET", `stat?path=${encodeURIComponent(path)}`)).toBe("invalid_path");
    },
  );

  test("never follow a link out of the drive", async () => {
    writeFileSync(join(daemon.home, "host-secret"), "host");
    symlinkSync(join(daemon.home, "host-secret"), join(directory, "leak"));
    symlinkSync("../../..", join(directory, "up"));
    for (const path of ["leak", "up/roomd.db", "up/up/etc/passwd"]) {
      expect(await codeOf("GET", `read?path=${path}`)).toBe("path_escapes_drive");
      expect(await codeOf("GET", `files/${path}`)).toBe("path_escapes_drive");
    }
    expect(await codeOf("POST", "write", { path: "up/x", content: "x" })).toBe("path_escapes_drive");
    expect((await write({ path: "leak", content: "x", append: true })).body.code).toBe("path_escapes_drive");
    expect(await daemon.problem("PUT", at("files/up/x"), "x")).toMatchObject({
      status: 403,
      code: "path_escapes_drive",
    });
    expect(readFileSync(join(daemon.home, "host-secret"), "utf8")).toBe("host");
    expect(await daemon.ok("GET", at("stat?path=leak"))).toMatchObject({ type: "symlink" });
  });
});

describe("list, stat, mkdir, move, delete", () => {
  let room: string;
  const own = (call: string) => `/v1/rooms/${room}/drive/${call}`;
  beforeAll(async () => {
    room = "tree";
    await daemon.room(room);
    for (const path of ["b/two", "b/one", "a", "c/d/e"]) await daemon.ok("POST", own("write"), { path, content: path });
  });
  const paths = (list: Json) => list.items.map(({ path }: Json) => path);

  test("a name that is not UTF-8 is returned as bytes", async () => {
    const bad = Buffer.concat([Buffer.from(`${directory}/odd-`), Buffer.of(0xff)]);
    writeFileSync(bad, "x");
    try {
      const { items } = await daemon.ok("GET", at("list?path=/"));
      const odd = items.filter(({ path }: Json) => path.startsWith("/odd-"));
      expect(odd).toMatchObject([
        { path: "/odd-\ufffd", path_b64: Buffer.from([...Buffer.from("/odd-"), 0xff]).toString("base64") },
      ]);
      expect(items.filter(({ path_b64 }: Json) => path_b64 !== undefined)).toHaveLength(1);
    } finally {
      rmSync(bad);
    }
  });

  test("the list has the whole drive by default, and one directory if named", async () => {
    const whole = await daemon.ok("GET", own("list"));
    expect(whole.path).toBe("/");
    expect(paths(whole)).toEqual(["/a", "/b", "/b/one", "/b/two", "/c", "/c/d", "/c/d/e"]);
    expect(whole.items[0]).toEqual({
      path: "/a",
      name: "a",
      type: "file",
      size_bytes: 1,
      mode: "0644",
      modified_at: expect.any(String),
    });
    expect(paths(await daemon.ok("GET", own("list?path=/")))).toEqual(["/a", "/b", "/c"]);
    expect(paths(await daemon.ok("GET", own("list?path=b&recursive=true")))).toEqual(["/b/one", "/b/two"]);
    expect(paths(await daemon.ok("GET", own("list?recursive=false")))).toEqual(["/a", "/b", "/c"]);
    expect((await daemon.problem("GET", own("list?path=none"))).code).toBe("path_not_found");
    expect((await daemon.problem("GET", own("list?path=a"))).code).toBe("invalid_path");
  });

  test("the list is paged; its cursors are valid for it alone", async () => {
    const seen: string[] = [];
    let cursor: string | null = null;
    do {
      const page: Json = await daemon.ok("GET", own(`list?limit=2${cursor === null ? "" : `&cursor=${cursor}`}`));
      seen.push(...paths(page));
      cursor = page.next_cursor;
    } while (cursor !== null);
    expect(seen).toEqual(["/a", "/b", "/b/one", "/b/two", "/c", "/c/d", "/c/d/e"]);
    const { next_cursor } = await daemon.ok("GET", own("list?limit=1"));
    for (const query of [`path=/b&cursor=${next_cursor}`, `cursor=${next_cursor}x`, "cursor=abc"]) {
      expect(await daemon.problem("GET", own(`list?${query}`))).toMatchObject({ status: 400, code: "invalid_cursor" });
    }
  });

  test("stat returns metadata, mkdir creates missing parents", async () => {
    expect(await daemon.ok("GET", own("stat?path=/b"))).toMatchObject({
      path: "/b",
      guest_path: "/mnt/drive/b",
      name: "b",
      type: "directory",
    });
    expect((await daemon.problem("GET", own("stat?path=/none"))).code).toBe("path_not_found");
    const made = await daemon.api("POST", own("mkdir"), { path: "x/y/z", mode: "700" });
    expect(made).toMatchObject({
      status: 201,
      body: { path: "/x/y/z", type: "directory", mode: "0700", created: true },
    });
    expect((await daemon.api("POST", own("mkdir"), { path: "x/y/z" })).status).toBe(200);
    expect((await daemon.problem("POST", own("mkdir"), { path: "a" })).code).toBe("already_exists");
    expect((await daemon.problem("POST", own("mkdir"), { path: "a/b" })).code).toBe("invalid_path");
  });

  test("move renames, and replaces a target only on request", async () => {
    const move = (body: Json) => daemon.api("POST", own("move"), body);
    await daemon.ok("POST", own("write"), { path: "m/from", content: "moved" });
    await daemon.ok("POST", own("write"), { path: "m/to", content: "there" });
    expect((await move({ from: "m/from", to: "m/to" })).body.code).toBe("already_exists");
    const moved = await move({ from: "m/from", to: "m/to", overwrite: true });
    expect(moved).toMatchObject({ status: 200, body: { path: "/m/to", size_bytes: 5 } });
    expect((await daemon.ok("GET", own("read?path=m/to"))).content).toBe("moved");
    expect((await move({ from: "m/from", to: "m/x" })).body.code).toBe("path_not_found");
    expect((await move({ from: "m", to: "m/inside" })).body.code).toBe("invalid_path");
    expect((await move({ from: "../a", to: "m/\0" })).body.errors.map(({ field }: Json) => field)).toEqual([
      "from",
      "to",
    ]);
  });

  test("delete removes one entry, or a tree on request", async () => {
    const remove = (query: string) => daemon.api("DELETE", own(`delete?${query}`));
    expect((await remove("path=/c")).body.code).toBe("not_empty");
    expect(await remove("path=/c&recursive=true")).toMatchObject({
      status: 200,
      body: { path: "/c", guest_path: "/mnt/drive/c", state: "deleted" },
    });
    expect(await remove("path=/c")).toMatchObject({ status: 404, body: { code: "path_not_found" } });
    expect((await remove("path=/")).body.code).toBe("invalid_path");
    expect((await remove("")).body.errors).toMatchObject([{ field: "path", code: "required" }]);
  });
});

describe("files", () => {
  const large = Buffer.alloc(50 * MIB);
  for (let offset = 0; offset < large.length; offset += 4) large.writeUInt32LE((offset * 2_654_435_761) >>> 0, offset);

  test("of 50 MB are streamed in and out with equal digests", async () => {
    const put = await file("big/blob?mode=640", { method: "PUT", body: large });
    expect(put.status).toBe(201);
    expect(await put.json()).toMatchObject({
      path: "/big/blob",
      size_bytes: large.length,
      sha256: sha256(large),
      mode: "0640",
    });
    const got = await file("big/blob");
    expect(got.status).toBe(200);
    const hash = createHash("sha256");
    for await (const chunk of got.body ?? []) hash.update(chunk);
    expect(hash.digest("hex")).toBe(sha256(large));
    expect((await daemon.ok("GET", at("stat?path=big/blob"))).size_bytes).toBe(large.length);
  });

  test("are described by response headers, also to HEAD", async () => {
    const head = await file("big/blob", { method: "HEAD" });
    expect(head.status).toBe(200);
    expect(Object.fromEntries(head.headers)).toMatchObject({
      "content-length": String(large.length),
      "content-type": "application/octet-stream",
      "content-disposition": "attachment",
      "x-content-type-options": "nosniff",
      "content-security-policy": "sandbox; default-src 'none'",
      "accept-ranges": "bytes",
      etag: expect.stringMatching(/^"[\w-]{20,}"$/),
      "last-modified": expect.stringMatching(/GMT$/),
    });
  });

  test("are not sent again to clients that have them (304)", async () => {
    const etag = (await file("big/blob", { method: "HEAD" })).headers.get("etag") ?? "";
    const same = await file("big/blob", { headers: { "if-none-match": `"other", ${etag}` } });
    expect([same.status, same.headers.get("etag"), await same.text()]).toEqual([304, etag, ""]);
    await daemon.ok("POST", at("write"), { path: "changing", content: "1" });
    const before = (await file("changing", { method: "HEAD" })).headers.get("etag") ?? "";
    await daemon.ok("POST", at("write"), { path: "changing", content: "2" });
    const after = await file("changing", { headers: { "if-none-match": before } });
    expect([after.status, await after.text()]).toEqual([200, "2"]);
  });

  test.each([
    ["bytes=0-9", 206, 0, 10],
    ["bytes=1000-1000", 206, 1000, 1],
    [`bytes=${50 * MIB - 5}-`, 206, 50 * MIB - 5, 5],
    ["bytes=-7", 206, 50 * MIB - 7, 7],
    [`bytes=${50 * MIB - 3}-${60 * MIB}`, 206, 50 * MIB - 3, 3],
  ])("are sent partially for Range %s", async (range, status, offset, length) => {
    const part = await file("big/blob", { headers: { range } });
    expect(part.status).toBe(status);
    expect(part.headers.get("content-range")).toBe(`bytes ${offset}-${offset + length - 1}/${large.length}`);
    expect(Buffer.from(await part.arrayBuffer()).equals(large.subarray(offset, offset + length))).toBe(true);
  });

  test("answer 416 for a range beyond their end", async () => {
    const beyond = await file("big/blob", { headers: { range: `bytes=${50 * MIB}-` } });
    expect(beyond.status).toBe(416);
    expect(beyond.headers.get("content-range")).toBe(`bytes */${large.length}`);
    expect(await beyond.json()).toMatchObject({ code: "range_not_satisfiable" });
  });

  test("are written conditionally: If-Match, If-None-Match, overwrite", async () => {
    const put = (path: string, headers: Record<string, string>) => file(path, { method: "PUT", body: "new", headers });
    expect((await put("cond", { "if-match": "*" })).status).toBe(412);
    expect((await put("cond", { "if-none-match": "*" })).status).toBe(201);
    expect((await put("cond", { "if-none-match": "*" })).status).toBe(412);
    const etag = (await file("cond", { method: "HEAD" })).headers.get("etag") ?? "";
    expect((await put("cond", { "if-match": etag })).status).toBe(200);
    const stale = await put("cond", { "if-match": etag });
    expect([stale.status, ((await stale.json()) as Json).code]).toEqual([412, "precondition_failed"]);
    expect((await put("cond?overwrite=false", {})).status).toBe(409);
  });

  test("may have any valid name, and are not directories", async () => {
    for (const name of [
      "with space",
      "ünï",
      "per%cent",
      "question?",
      "hash#",
      "new\nline",
      "-dash",
      "a+b",
      "'quote\"",
    ]) {
      const path = `names/${encodeURIComponent(name)}`;
      expect((await file(path, { method: "PUT", body: name })).status).toBe(201);
      expect(await (await file(path)).text()).toBe(name);
      expect(readFileSync(join(directory, "names", name), "utf8")).toBe(name);
    }
    for (const method of ["GET", "PUT"]) {
      const refused = await file("names", { method, ...(method === "PUT" ? { body: "x" } : {}) });
      expect([refused.status, ((await refused.json()) as Json).code]).toEqual([409, "is_directory"]);
    }
    expect(((await (await file("names/none")).json()) as Json).code).toBe("path_not_found");
  });

  test("may be empty, and may be sent without a length", async () => {
    expect(((await (await file("empty", { method: "PUT" })).json()) as Json).size_bytes).toBe(0);
    expect(await (await file("empty")).text()).toBe("");
    const head = `PUT ${at("files/chunked")} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${daemon.apiKey}\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n`;
    expect(await overSocket(daemon, head, "5\r\nhello\r\n", "1\r\n!\r\n", "0\r\n\r\n")).toMatch(/^HTTP\/1.1 201 /);
    expect(await (await file("chunked")).text()).toBe("hello!");
  });

  test("whose upload is aborted are discarded, and the old file stays unchanged", async () => {
    await daemon.ok("POST", at("write"), { path: "kept/file", content: "old" });
    const { hostname, port } = new URL(daemon.url);
    const kept = join(directory, "kept");
    for (const framing of ["Content-Length: 10000000", "Transfer-Encoding: chunked"]) {
      const socket = connect({ host: hostname, port: Number(port) });
      const chunk = framing.startsWith("T") ? `10000\r\n${"x".repeat(0x10000)}\r\n` : "x".repeat(0x10000);
      socket.write(
        `PUT ${at("files/kept/file")} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${daemon.apiKey}\r\n${framing}\r\n\r\n${chunk}`,
      );
      // The upload is under way once its temporary file is there.
      await until(
        () => readdirSync(kept),
        (names) => names.length === 2,
      );
      socket.destroy();
      await until(
        () => readdirSync(kept),
        (names) => names.length === 1,
      );
    }
    expect(await (await file("kept/file")).text()).toBe("old");
    expect((await daemon.ok("GET", at("list?path=kept"))).items).toHaveLength(1);
  });

  test("whose download is aborted leak nothing", async () => {
    const descriptors = () => readdirSync(`/proc/${daemon.pid}/fd`).length;
    const before = descriptors();
    const aborted = Array.from({ length: 20 }, async () => {
      const giveUp = new AbortController();
      const response = await file("big/blob", { signal: giveUp.signal });
      await response.body?.getReader().read();
      giveUp.abort();
    });
    await Promise.all(aborted);
    await until(descriptors, (count) => count <= before + 2);
    expect((await daemon.api("GET", "/v1/me")).status).toBe(200);
  });
});

test("a full drive refuses writes with a reason, and works again once there is space", async () => {
  const room = await daemon.room("full");
  const filler = join(driveOf(room), "filler");
  expect(spawnSync("fallocate", ["-l", String(1024 * MIB - 2 * MIB), filler]).status).toBe(0);
  await until(
    () => daemon.ok("GET", "/v1/rooms/full"),
    ({ drive }) => drive.used_bytes > 1000 * MIB,
  );
  expect((await daemon.ok("GET", "/v1/rooms/full")).warnings).toHaveLength(1);
  const own = (call: string) => `/v1/rooms/full/drive/${call}`;
  const content = "x".repeat(3 * MIB);
  expect(await daemon.problem("POST", own("write"), { path: "w", content })).toMatchObject({
    status: 507,
    code: "drive_full",
  });
  expect(await daemon.problem("PUT", own("files/w"), content)).toMatchObject({ status: 507, code: "drive_full" });
  expect((await daemon.ok("GET", own("list"))).items.map(({ path }: Json) => path)).toEqual(["/filler"]);
  expect((await daemon.api("POST", own("write"), { path: "small", content: "x" })).status).toBe(201);
  await daemon.ok("DELETE", own("delete?path=filler"));
  expect((await daemon.api("POST", own("write"), { path: "w", content })).status).toBe(201);
});

test("a destroyed room has no drive", async () => {
  await daemon.room("gone");
  await daemon.ok("DELETE", "/v1/rooms/gone");
  for (const [method, call] of [
    ["GET", "list"],
    ["GET", "files/x"],
    ["PUT", "files/x"],
    ["DELETE", "delete?path=x"],
  ] as const) {
    expect((await daemon.problem(method, `/v1/rooms/gone/drive/${call}`)).code).toBe("room_not_found");
  }
});
