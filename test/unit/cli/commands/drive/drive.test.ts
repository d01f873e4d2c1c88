import { lstatSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { problem, run, scratch, standIn } from "../../cli-fixture.ts";

const WRITTEN = { path: "/in/a b.txt", size_bytes: 5, sha256: "0", created: true };

test("puts a file, under its own name when the place is a directory", async () => {
  using directory = scratch();
  const file = join(directory.path, "a b.txt");
  writeFileSync(file, "hello");
  await using service = await standIn(() => Response.json(WRITTEN, { status: 201 }));
  const ran = await run(["drive", "put", file, "r:/in/", "--mode", "0600", "--no-overwrite"], service);
  expect(ran).toEqual({ status: 0, stdout: "wrote /in/a b.txt, 5 B\n", stderr: "" });
  expect(service.seen[0]).toMatchObject({
    method: "PUT",
    path: "/v1/rooms/r/drive/files/in/a%20b.txt?mode=0600&overwrite=false",
  });
  expect(new TextDecoder().decode(service.seen[0]?.bytes)).toBe("hello");
  expect(service.seen[0]?.headers.get("content-length")).toBe("5");
});

test("puts piped input of any size", async () => {
  await using service = await standIn(() => Response.json(WRITTEN));
  const bytes = new Uint8Array(20_000_000).fill(7);
  expect((await run(["drive", "put", "-", "r:x?y#z", "--json"], { ...service, stdin: bytes })).stdout).toBe(
    `${JSON.stringify(WRITTEN)}\n`,
  );
  expect(service.seen[0]?.path).toBe("/v1/rooms/r/drive/files/x%3Fy%23z");
  expect(service.seen[0]?.bytes.length).toBe(bytes.length);
});

test("gets a file to a name, a directory and standard output", async () => {
  using directory = scratch();
  const bytes = new Uint8Array(3_000_000).map((_, index) => index % 251);
  await using service = await standIn(() => new Response(bytes));
  mkdirSync(join(directory.path, "into"));
  const options = { ...service, cwd: directory.path };
  expect(await run(["drive", "get", "r:/d/out.bin", "copy.bin"], options)).toMatchObject({ status: 0, stderr: "" });
  expect((await run(["drive", "get", "r:/d/out.bin", "into"], options)).stdout).toBe("read into/out.bin, 2.9 MiB\n");
  for (const file of ["copy.bin", "into/out.bin"]) {
    expect(Buffer.compare(readFileSync(join(directory.path, file)), bytes)).toBe(0);
  }
  expect((await run(["drive", "get", "r:/d/out.bin", "-"], options)).stdout.length).toBe(
    new TextDecoder().decode(bytes).length,
  );
  expect(readdirSync(directory.path).sort()).toEqual(["copy.bin", "into"]);
});

test("replaces no device, pipe or link, and keeps a file's permissions", async () => {
  using directory = scratch();
  const [pipe, link, file] = ["pipe", "link", "file"].map((name) => join(directory.path, name)) as [
    string,
    string,
    string,
  ];
  writeFileSync(file, "old", { mode: 0o600 });
  symlinkSync("file", link);
  Bun.spawnSync(["mkfifo", pipe]);
  await using service = await standIn(() => new Response("new"));
  const reader = Bun.spawn(["cat", pipe], { stdout: "pipe" });
  const options = { ...service, cwd: directory.path };
  const ran = await run(["drive", "get", "r:/x", "pipe"], options);
  const isPipe = lstatSync(pipe).isFIFO();
  if (!isPipe) reader.kill();
  expect([ran.status, isPipe, await reader.stdout.text()]).toEqual([0, true, "new"]);
  expect((await run(["drive", "get", "r:/x", "link"], options)).status).toBe(0);
  expect([lstatSync(link).isSymbolicLink(), readFileSync(file, "utf8")]).toEqual([true, "new"]);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readdirSync(directory.path).sort()).toEqual(["file", "link", "pipe"]);
});

test("leaves no partial file if the transfer breaks off or is refused", async () => {
  using directory = scratch();
  writeFileSync(join(directory.path, "old"), "old");
  await using service = await standIn(({ path }) => {
    if (path.endsWith("/none")) return problem({ status: 404, code: "path_not_found", detail: "No /none." });
    return new Response(
      new ReadableStream({
        async pull(controller) {
          controller.enqueue(new Uint8Array(1000));
          await Bun.sleep(50);
          controller.error(new Error("gone"));
        },
      }),
    );
  });
  const options = { ...service, cwd: directory.path };
  const broken = await run(["drive", "get", "r:/x", "old"], options);
  expect(broken).toMatchObject({ status: 1, stdout: "", stderr: expect.stringMatching(/broke off/) });
  expect(await run(["drive", "get", "r:/none", "new"], options)).toMatchObject({
    status: 1,
    stderr: "roomd: No /none.\n",
  });
  expect(await run(["drive", "get", "r:/x", "no/such/dir"], options)).toMatchObject({ status: 1 });
  expect(readdirSync(directory.path)).toEqual(["old"]);
  expect(readFileSync(join(directory.path, "old"), "utf8")).toBe("old");
});

test("reports files that cannot be sent", async () => {
  await using service = await standIn(() => Response.json({}));
  expect((await run(["drive", "put", "/nowhere/x", "r:/x"], service)).stderr).toMatch(/^roomd: \/nowhere\/x: /);
  expect((await run(["drive", "put", "/etc", "r:/x"], service)).stderr).toMatch(/^roomd: \/etc: /);
  expect(service.seen).toEqual([]);
});

test("the other calls", async () => {
  await using service = await standIn(() => Response.json({ path: "/b", created: true, items: [], next_cursor: null }));
  await run(["drive", "ls", "r"], service);
  await run(["drive", "ls", "r:/a", "-r"], service);
  await run(["drive", "stat", "r:a:b"], service);
  await run(["drive", "rm", "r:/a", "-r"], service);
  expect((await run(["drive", "mv", "r:/a", "r:/b", "--overwrite"], service)).stdout).toBe("moved to /b\n");
  expect((await run(["drive", "mkdir", "r:/b"], service)).stdout).toBe("made /b\n");
  expect(service.seen.map(({ method, path, body }) => [method, path, body])).toEqual([
    ["GET", "/v1/rooms/r/drive/list?path=%2F&recursive=false", null],
    ["GET", "/v1/rooms/r/drive/list?path=%2Fa&recursive=true", null],
    ["GET", "/v1/rooms/r/drive/stat?path=a%3Ab", null],
    ["DELETE", "/v1/rooms/r/drive/delete?path=%2Fa&recursive=true", null],
    ["POST", "/v1/rooms/r/drive/move", { from: "/a", to: "/b", overwrite: true }],
    ["POST", "/v1/rooms/r/drive/mkdir", { path: "/b" }],
  ]);
});

test("reads a part of a file, and writes a text or piped input", async () => {
  await using service = await standIn(({ method }) =>
    method === "GET" ? new Response("part") : Response.json(WRITTEN),
  );
  expect(await run(["drive", "read", "r:/a", "--offset", "3", "--length", "4"], service)).toEqual({
    status: 0,
    stdout: "part",
    stderr: "",
  });
  expect(service.seen[0]?.path).toBe("/v1/rooms/r/drive/read?path=%2Fa&offset=3&length=4&format=raw");
  await run(["drive", "write", "r:/a", "text"], service);
  expect((await run(["drive", "write", "r:/a", "--append"], { ...service, stdin: "piped" })).stdout).toBe(
    "wrote /in/a b.txt, 5 B\n",
  );
  expect(service.seen.slice(1).map(({ body }) => body)).toEqual([
    { path: "/a", content: "text" },
    { path: "/a", content_b64: "cGlwZWQ=", append: true },
  ]);
});
