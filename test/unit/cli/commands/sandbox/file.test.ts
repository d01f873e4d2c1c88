/** `roomd file`, and `roomd ls` and `roomd rm` of a sandbox's files: their calls and their output. */
import { expect, test } from "vitest";
import { run, standIn } from "../../cli-fixture.ts";

const FILES = "/v1/rooms/r/sandboxes/w/files";
const ENTRY = { path: "/b", type: "file", created: true };

test("each command makes its call", async () => {
  await using service = await standIn(() => Response.json({ ...ENTRY, items: [ENTRY], next_cursor: "c" }));
  const printed = async (...words: string[]) => (await run(words, service)).stdout;
  expect(await printed("file", "stat", "r/w:/b", "--follow")).toContain("type");
  expect(await printed("file", "mkdir", "r/w:/b", "--mode", "0700", "--owner", "agent")).toBe("made /b\n");
  expect(await printed("file", "mv", "r/w:/a", "r/w:/b", "--overwrite")).toBe("moved to /b\n");
  expect(await printed("ls", "r/w:/", "-r", "--limit", "1")).toMatch(/^\/b\n.*--cursor c\n$/);
  expect(await printed("rm", "r/w:/b", "-r")).toBe("deleted /b\n");
  expect(service.seen.map(({ method, path, body }) => [method, path, body])).toEqual([
    ["GET", `${FILES}/stat?path=%2Fb&follow=true`, null],
    ["POST", `${FILES}/mkdir`, { path: "/b", mode: "0700", owner: "agent" }],
    ["POST", `${FILES}/move`, { from: "/a", to: "/b", overwrite: true }],
    ["GET", `${FILES}?path=%2F&recursive=true&limit=1`, null],
    ["DELETE", `${FILES}?path=%2Fb&recursive=true`, null],
  ]);
  for (const words of [
    ["stat", "r:/b"],
    ["stat", "r/w:b"],
    ["mv", "r/w:/a", "r/v:/a"],
  ])
    expect((await run(["file", ...words], service)).status).toBe(2);
});

test("a watch prints each change and resumes after a broken connection", async () => {
  const change = (cursor: string, more: object) => ({ cursor, is_directory: false, ...more });
  const lines = (...events: object[]) => new Response(events.map((event) => `${JSON.stringify(event)}\n`).join(""));
  const end = { type: "error", code: "sandbox_not_found", detail: "Destroyed.", retryable: false };
  const streams = () => [
    lines({ type: "watching", cursor: "s.0", path: "/d" }, change("s.1", { type: "created", path: "/d/a\u001b[2J" })),
    lines(change("s.2", { type: "moved", path: "/d/c", from: "/d/b" }), end),
  ];
  for (const json of [false, true]) {
    const left = streams();
    await using service = await standIn(() => left.shift() ?? lines(end));
    const ran = await run(["file", "watch", "r/w:/d", "-r", ...(json ? ["--json"] : [])], service);
    expect([ran.status, ran.stderr]).toEqual([1, expect.stringContaining("Destroyed.")]);
    const printed = ran.stdout.trimEnd().split("\n");
    if (json) expect(printed.map((line) => JSON.parse(line).type)).toEqual(["watching", "created", "moved"]);
    else expect(printed).toEqual(["created /d/a\\x1b[2J", "moved /d/b -> /d/c"]);
    expect(service.seen.map(({ path }) => path)).toEqual([
      `${FILES}/watch?path=%2Fd&recursive=true`,
      `${FILES}/watch?path=%2Fd&recursive=true&after=s.1`,
    ]);
  }
});
