import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { run, scratch, standIn } from "../../cli-fixture.ts";

const PNG = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0, 255);
const USED = { action: "left_click", width: 640, height: 400, cursor: [1, 2] };

test("writes the picture into a file, or to standard output", async () => {
  using directory = scratch();
  await using service = await standIn(() => new Response(PNG, { headers: { "content-type": "image/png" } }));
  const file = join(directory.path, "screen.png");
  const ran = await run(["screen", "r", "w", "--output", file, "--width", "640"], service);
  expect(ran).toEqual({ status: 0, stdout: `wrote ${file}, 6 B\n`, stderr: "" });
  expect(service.seen[0]).toMatchObject({ method: "GET", path: "/v1/rooms/r/sandboxes/w/screen?width=640" });
  expect(new Uint8Array(readFileSync(file))).toEqual(PNG);
  expect((await run(["screen", "r", "w"], service)).stdout).toBe(new TextDecoder().decode(PNG));
});

test("performs the requested action, with a picture only on request", async () => {
  using directory = scratch();
  await using service = await standIn(({ body }) => {
    const { screenshot } = body as { screenshot: boolean };
    return Response.json({ ...USED, screenshot_b64: screenshot ? Buffer.from(PNG).toString("base64") : null });
  });
  const file = join(directory.path, "after.png");
  const click = ["computer", "r", "w", "left_click", "--coordinate", "10,20", "--width", "640"];
  const ran = await run([...click, "--output", file], service);
  expect(ran.status).toBe(0);
  expect(ran.stdout).toContain(file);
  expect(ran.stdout).not.toContain("screenshot");
  expect(service.seen[0]?.body).toEqual({ action: "left_click", coordinate: [10, 20], width: 640, screenshot: true });
  expect(new Uint8Array(readFileSync(file))).toEqual(PNG);
  await run(click, service);
  expect(service.seen[1]?.body).toMatchObject({ screenshot: false });
  expect(JSON.parse((await run([...click, "--json"], service)).stdout).screenshot_b64).toBe("iVBORwD/");
});

test("creates a ticket and prints the page that accepts it", async () => {
  const ticket = { ws_path: "/v1/rooms/r/sandboxes/w/screen/ws?ticket=sdt_1", ticket: "sdt_1", drives: true };
  await using service = await standIn(() => Response.json(ticket, { status: 201 }));
  const ran = await run(["screen", "r", "w", "--ticket", "--drive", "--json"], service);
  expect(service.seen[0]).toMatchObject({ path: "/v1/rooms/r/sandboxes/w/screen/ticket", body: { drive: true } });
  expect(JSON.parse(ran.stdout)).toMatchObject({ ticket: "sdt_1", page: `${service.url}/rooms/r/agents/w/screen` });
});

test("reports an action without a picture", async () => {
  await using service = await standIn(() => Response.json({ ...USED, screenshot_b64: null }));
  const ran = await run(["computer", "r", "w", "left_click", "--output", "/nowhere/x.png"], service);
  expect(ran).toMatchObject({ status: 0, stderr: expect.stringContaining("no picture") });
  expect(ran.stdout).not.toContain("/nowhere");
});

test.each([
  ["an unknown action", ["computer", "r", "w", "fly"]],
  ["an incomplete position", ["computer", "r", "w", "mouse_move", "--coordinate", "10"]],
  ["a position that is not numeric", ["computer", "r", "w", "mouse_move", "--coordinate", "a,b"]],
  ["a picture without a destination", ["computer", "r", "w", "screenshot"]],
  ["a picture as JSON", ["screen", "r", "w", "--json"]],
  ["to drive without a ticket", ["screen", "r", "w", "--drive"]],
  ["a ticket together with a picture", ["screen", "r", "w", "--ticket", "--output", "x.png"]],
  ["a file that cannot be created", ["screen", "r", "w", "--output", "/nowhere/x.png"]],
])("%s is refused", async (_, args) => {
  await using service = await standIn(() => new Response(PNG));
  const ran = await run(args, service);
  expect(ran.status).toBe(args.includes("/nowhere/x.png") ? 1 : 2);
  expect(ran.stdout).toBe("");
});
