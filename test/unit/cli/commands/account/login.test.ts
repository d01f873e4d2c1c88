/** Sign-in by the command line with a service that refers to another one. */
import { expect, test } from "vitest";
import { run, standIn } from "../../cli-fixture.ts";

test("a sign-in page of another service is rejected, and its code is not shown", async () => {
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
  expect(ran.stderr).toContain("https://rooms.example.org/device");
  expect(ran.stderr).not.toContain(code);
  expect(service.seen.map(({ path }) => path)).toEqual(["/device_authorization"]);
});
