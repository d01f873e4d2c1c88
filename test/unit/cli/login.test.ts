/** Signing in by the command line: where it sends people, and what it does not show. */
import { expect, test } from "vitest";
import { run, standIn } from "./cli-fixture.ts";

test("sends nobody to another service than the one that is to be signed in at", async () => {
  const code = "ABCD-EFGH";
  await using service = await standIn(() =>
    Response.json({
      device_code: "odc-x",
      user_code: code,
      verification_uri: "https://rooms.example.org/device",
      verification_uri_complete: `https://rooms.example.org/device?user_code=${code}`,
      expires_in: 60,
      interval: 1,
    }),
  );
  const ran = await run(["login", service.url], service);
  expect(ran).toMatchObject({ status: 1, stdout: "" });
  expect(ran.stderr).toContain("sends you to https://rooms.example.org/device to sign in, which is another one");
  expect(ran.stderr).not.toContain(code);
  expect(service.seen.map(({ path }) => path)).toEqual(["/device_authorization"]);
});
