/** `roomd cp` against a stand-in that stores files: each direction, and a sandbox that lists names with path traversal. */
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { problem, run, type Seen, scratch, standIn } from "../../cli-fixture.ts";

interface Kept {
  type: "file" | "directory" | "symlink";
  mode: string;
  text?: string;
  target?: string;
}

const file = (text: string, mode = "0644"): Kept => ({ type: "file", mode, text });
const DIRECTORY: Kept = { type: "directory", mode: "0755" };
const link = (target: string): Kept => ({ type: "symlink", mode: "0777", target });

/** Sandbox w of room r, and r's drive, both with these files by their paths; lists have pages of two. */
function serving(kept: Record<string, Kept>) {
  const files = new Map(Object.entries(kept));
  const entryOf = (path: string) => ({ path, size_bytes: 1, ...files.get(path) });
  const answer = ({ method, path, bytes, body }: Seen): Response => {
    const url = new URL(path, "http://stand.in");
    const [, call = "", raw = ""] = /(?:sandboxes\/w\/files|drive)\/?([a-z]*)(.*)$/.exec(url.pathname) ?? [];
    const at = decodeURIComponent(url.searchParams.get("path") ?? raw);
    if (call === "stat" || (method === "GET" && (call === "raw" || call === "files"))) {
      if (!files.has(at)) return problem({ status: 404, code: "path_not_found", detail: `No ${at}.` });
      return call === "stat" ? Response.json(entryOf(at)) : new Response(files.get(at)?.text ?? "");
    }
    if (call === "mkdir") return Response.json({ path: (body as { path: string }).path }, { status: 201 });
    if (method === "PUT") return Response.json({ path: at, size_bytes: bytes.length }, { status: 201 });
    const below = [...files.keys()].filter((each) => each.startsWith(at === "/" ? at : `${at}/`));
    const from = Number(url.searchParams.get("cursor") ?? 0);
    const next_cursor = from + 2 < below.length ? String(from + 2) : null;
    return Response.json({ path: at, items: below.slice(from, from + 2).map(entryOf), next_cursor });
  };
  return standIn(answer);
}

const sentIn = (seen: Seen[]) =>
  seen
    .filter(({ method }) => method !== "GET")
    .map(({ path, bytes, body }) => [path.replace("/v1/rooms/r/", ""), body ?? new TextDecoder().decode(bytes)]);

test("a file is copied into a sandbox with its mode, under its own name if DST is a directory", async () => {
  using directory = scratch();
  writeFileSync(join(directory.path, "a b.sh"), "hello", { mode: 0o750 });
  await using service = await serving({ "/root": DIRECTORY });
  const options = { ...service, cwd: directory.path };
  expect(await run(["cp", "a b.sh", "r/w:/root", "--owner", "agent"], options)).toEqual({
    status: 0,
    stdout: expect.stringMatching(/ 5 B .*r\/w:\/root\/a b\.sh\n$/),
    stderr: "",
  });
  await run(["cp", "./a b.sh", "r/w:/new/", "--mode", "0600", "--no-overwrite"], options);
  await run(["cp", "./a b.sh", "r:x/y"], options);
  const ran = await run(["cp", "a b.sh", "r/w:/root/c", "--json"], options);
  expect(JSON.parse(ran.stdout)).toEqual({
    ...{ from: "a b.sh", to: "r/w:/root/c", files: 1, directories: 0, links: 0, size_bytes: 5, left_out: [] },
  });
  expect(sentIn(service.seen)).toEqual([
    ["sandboxes/w/files/raw/root/a%20b.sh?mode=0750&owner=agent", "hello"],
    ["sandboxes/w/files/raw/new/a%20b.sh?mode=0600&overwrite=false", "hello"],
    ["drive/files/x/y?mode=0750", "hello"],
    ["sandboxes/w/files/raw/root/c?mode=0750", "hello"],
  ]);
});

test("a directory is copied into a sandbox except for its links, which are listed", async () => {
  using directory = scratch();
  mkdirSync(join(directory.path, "src/inner"), { recursive: true, mode: 0o755 });
  writeFileSync(join(directory.path, "src/inner/run"), "1", { mode: 0o755 });
  symlinkSync("inner", join(directory.path, "src/link"));
  await using service = await serving({ "/root": DIRECTORY });
  const options = { ...service, cwd: directory.path };
  const ran = await run(["cp", "-r", "src", "r/w:/root"], options);
  expect(ran).toEqual({
    status: 0,
    stdout: expect.stringMatching(/ 1 file, 2 directories, 1 B, .*r\/w:\/root\/src\n$/),
    stderr: expect.stringMatching(/ 1 .*: link\n$/),
  });
  await run(["cp", "-r", "src/.", "r:/root"], options);
  expect(sentIn(service.seen)).toEqual([
    ["sandboxes/w/files/mkdir", { path: "/root/src", mode: "0755" }],
    ["sandboxes/w/files/mkdir", { path: "/root/src/inner", mode: "0755" }],
    ["sandboxes/w/files/raw/root/src/inner/run?mode=0755", "1"],
    ["drive/mkdir", { path: "/root", mode: "0755" }],
    ["drive/mkdir", { path: "/root/inner", mode: "0755" }],
    ["drive/files/root/inner/run?mode=0755", "1"],
  ]);
});

test("a directory of a sandbox is copied with modes and links, over all pages, and can be copied again", async () => {
  using directory = scratch();
  const tree = { "/out": DIRECTORY, "/out/a": file("A", "0755"), "/out/d": DIRECTORY, "/out/d/b": file("B") };
  await using service = await serving({
    ...tree,
    "/out/d/deep": { ...DIRECTORY, mode: "0500" },
    "/out/l": link("d/b"),
  });
  const options = { ...service, cwd: directory.path };
  expect((await run(["cp", "-r", "r/w:/out", "copy"], options)).stdout).toMatch(
    / 2 files, 3 directories, 1 link, 2 B, .*copy\n$/,
  );
  const copy = join(directory.path, "copy");
  expect([readFileSync(join(copy, "a"), "utf8"), readFileSync(join(copy, "d/b"), "utf8")]).toEqual(["A", "B"]);
  expect([statSync(join(copy, "a")).mode & 0o111, statSync(join(copy, "d/deep")).mode & 0o700]).toEqual([0o111, 0o700]);
  expect(readlinkSync(join(copy, "l"))).toBe("d/b");
  expect((await run(["cp", "-r", "r/w:/out/.", "copy"], options)).status).toBe(0);
  expect((await run(["cp", "-r", "r:/out/", "copy"], options)).status).toBe(0);
  expect(readdirSync(copy).sort()).toEqual(["a", "d", "l", "out"]);
});

test("a copy between sandbox and drive is streamed", async () => {
  await using service = await serving({ "/out": DIRECTORY, "/out/a": file("A", "0755"), "/out/l": link("a") });
  expect(await run(["cp", "-r", "r/w:/out", "r:/kept"], service)).toMatchObject({ status: 0, stderr: /1 symbolic/ });
  expect((await run(["cp", "r:/out/a", "r/w:/b"], service)).stdout).toMatch(/ 1 B .*r\/w:\/b\n$/);
  expect(sentIn(service.seen)).toEqual([
    ["drive/mkdir", { path: "/kept", mode: "0755" }],
    ["drive/files/kept/a?mode=0755", "A"],
    ["sandboxes/w/files/raw/b?mode=0755", "A"],
  ]);
});

test("copies from standard input and to standard output", async () => {
  await using service = await serving({ "/a": file("text"), "/d": DIRECTORY });
  expect(await run(["cp", "r/w:/a", "-"], service)).toEqual({ status: 0, stdout: "text", stderr: "" });
  expect((await run(["cp", "-", "r/w:/b"], { ...service, stdin: "piped" })).stdout).toMatch(/ 5 B .*r\/w:\/b\n$/);
  expect(sentIn(service.seen)).toEqual([["sandboxes/w/files/raw/b", "piped"]]);
  for (const words of [
    ["-", "r/w:/d/"],
    ["r/w:/d", "-"],
    ["-", "-"],
  ]) {
    expect((await run(["cp", ...words], service)).status).toBe(2);
  }
});

test("refusals name the side and the remedy", async () => {
  using directory = scratch();
  await using service = await serving({ "/d": DIRECTORY, "/a": file("a") });
  const options = { ...service, cwd: directory.path };
  writeFileSync(join(directory.path, "there"), "there");
  const refused = async (...words: string[]) => {
    const { status, stderr } = await run(["cp", ...words], options);
    return [status, stderr];
  };
  expect(await refused("r/w:/d", ".")).toEqual([2, expect.stringMatching(/^roomd: r\/w:\/d .*\n.*-r /)]);
  expect(await refused(".", "r/w:/d")).toEqual([2, expect.stringMatching(/^roomd: \. .*\n.*-r /)]);
  expect(await refused("r/w:/none", ".")).toEqual([1, expect.stringContaining("r/w:/none")]);
  expect(await refused("none", "r/w:/d")).toEqual([1, expect.stringMatching(/^roomd: none\b/)]);
  expect(await refused("there", "./a:b")).toEqual([2, expect.stringContaining("ROOM/AGENT:PATH")]);
  expect(await refused("there", "r/w:d")).toEqual([2, expect.stringContaining("such as /root/d")]);
  expect(await refused("r/w:/a", "there", "--owner", "agent")).toEqual([2, expect.stringContaining("--owner")]);
  expect(await refused("r/w:/a", "there", "--no-overwrite")).toEqual([1, expect.stringMatching(/^roomd: there /)]);
  expect(sentIn(service.seen)).toEqual([]);
});

test.each([
  ["climbs", { "/out/../../escaped": file("x") }],
  ["has no directory of its own", { "/out/up/escaped": file("x") }],
  ["is below a link of the same listing", { "/out/up": link(".."), "/out/up/escaped": file("x") }],
])("writes nothing outside DST for a name that %s", async (_, entries) => {
  using directory = scratch();
  await using service = await serving({ "/out": DIRECTORY, ...entries });
  const options = { ...service, cwd: directory.path };
  mkdirSync(join(directory.path, "copy"));
  expect((await run(["cp", "-r", "r/w:/out/.", "copy"], options)).status).toBe(1);
  expect([existsSync(join(directory.path, "escaped")), readdirSync(join(directory.path, "copy"))]).toEqual([false, []]);
});

test("writes nothing through a link created by an earlier copy", async () => {
  using directory = scratch();
  const path = (name: string) => join(directory.path, name);
  mkdirSync(path("copy"));
  mkdirSync(path("outside"));
  writeFileSync(path("secret"), "secret");
  symlinkSync("../outside", path("copy/d"));
  symlinkSync("../secret", path("copy/f"));
  const options = { cwd: directory.path };
  await using one = await serving({ "/out": DIRECTORY, "/out/d": DIRECTORY, "/out/d/escaped": file("x") });
  expect(await run(["cp", "-r", "r/w:/out/.", "copy"], { ...one, ...options })).toMatchObject({
    status: 1,
    stderr: expect.stringContaining("copy/d"),
  });
  await using other = await serving({ "/out": DIRECTORY, "/out/f": file("new") });
  expect((await run(["cp", "-r", "r/w:/out/.", "copy"], { ...other, ...options })).status).toBe(0);
  expect(readdirSync(path("outside"))).toEqual([]);
  expect([readFileSync(path("secret"), "utf8"), readFileSync(path("copy/f"), "utf8")]).toEqual(["secret", "new"]);
  expect(lstatSync(path("copy/f")).isFile()).toBe(true);
});
