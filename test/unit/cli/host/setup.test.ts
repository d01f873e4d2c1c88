/** The last lines of `roomd setup`, and those of an error of a build. */
import { expect, test } from "vitest";
import { exportLines } from "../../../../daemon/cli/host/setup.ts";
import { CliError } from "../../../../daemon/cli/kit/cli-error.ts";

const MADE = { url: "http://127.0.0.1:8080", api_key: "key-x", ca_cert: null, setup: null };
const EXPORTS = ["export ROOMD_URL=http://127.0.0.1:8080", "export ROOMD_API_KEY=key-x"];

test("last lines are shell exports, preceded by a warning if guests are emulated", () => {
  expect(exportLines({ ...MADE, slow: null })).toEqual(EXPORTS);
  const slow = "There is no /dev/kvm on this host. Guests are emulated, about ten times slower. Use a host with KVM.";
  const lines = exportLines({ ...MADE, setup: "http://127.0.0.1:8080/setup#x", slow });
  expect(lines.slice(-2)).toEqual(EXPORTS);
  expect(lines.join("\n")).toContain(slow);
});

test("a build error shows the program's last lines, and no field names", () => {
  const last_lines = ["first", ...Array.from({ length: 19 }, (_, index) => `line ${index}`), "no such host"];
  const detail = "The image could not be fetched.";
  const failed = new CliError({
    detail,
    details: { step: "pull", last_lines },
    errors: [],
    hint: "Check the network.",
  });
  const { lines } = failed;
  expect(lines).toEqual([detail, ...last_lines.slice(1).map((line) => `  ${line}`), "Check the network."]);
  const none = new CliError({ detail, details: { last_lines: "x" }, errors: [], hint: null });
  expect(none.lines).toEqual([detail]);
});
