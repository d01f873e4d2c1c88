import { expect, test } from "vitest";
import { run, standIn } from "../cli-fixture.ts";

test.each([
  [["audit", "r", "--since", "yesterday"], "such as 2026-01-31T12:00:00Z, or unix seconds."],
  [["timeline", "r", "--until", "2026-13-45T00:00:00Z"], "such as 2026-01-31T12:00:00Z, or unix seconds."],
  [["timeline", "r", "--type", "command,foo"], "foo is not one of command, wait, "],
  [["room", "list", "--label", "web"], "It must be KEY=VALUE."],
])("values that the service would reject by a pattern get an error in words: %j", async (args, expected) => {
  await using service = await standIn(() => Response.json({ items: [], open: [], next_cursor: null }));
  const ran = await run(args, service);
  expect([ran.status, ran.stderr]).toEqual([2, expect.stringContaining(expected)]);
  expect(service.seen).toEqual([]);
});

test("times, types and labels are sent in the service's format", async () => {
  await using service = await standIn(() => Response.json({ items: [], open: [], next_cursor: null }));
  const since = ["--since", "1767225600.5", "--until", "2026-01-31T12:00+01:00"];
  expect((await run(["timeline", "r", "--type", "command,wait", ...since], service)).status).toBe(0);
  expect((await run(["room", "list", "--label", "team=a=b"], service)).status).toBe(0);
  const [timeline, rooms] = service.seen.map(({ path }) => new URLSearchParams(path.split("?")[1]));
  expect(Object.fromEntries(timeline ?? [])).toMatchObject({
    types: "command,wait",
    since: "1767225600.5",
    until: "2026-01-31T12:00+01:00",
  });
  expect(rooms?.get("label")).toBe("team:a=b");
});
