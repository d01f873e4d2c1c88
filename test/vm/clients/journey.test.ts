/** The whole workflow once, as a newcomer does it: with curl and nothing else, on a daemon that detects its host's capabilities itself. */
import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import type { Json } from "../../harness/daemon.ts";
import { withGuests } from "../../harness/guests.ts";

withGuests("with curl alone", { env: { ROOMD_ACCELERATION: "auto" } }, (guests) => {
  /** Runs curl; returns the status and the body. */
  function curl(method: string, path: string, body?: unknown): { status: number; body: Json } {
    const { url, apiKey } = guests.daemon;
    const printed = execFileSync("curl", [
      ...["--silent", "--show-error", "--request", method, "--write-out", "\n%{http_code}"],
      ...["--header", `Authorization: Bearer ${apiKey}`],
      ...(body === undefined ? [] : ["--header", "Content-Type: application/json", "--data", JSON.stringify(body)]),
      `${url}${path}`,
    ]).toString();
    const end = printed.lastIndexOf("\n");
    return { status: Number(printed.slice(end + 1)), body: JSON.parse(printed.slice(0, end)) };
  }

  test("a room, a sandbox, a command, a file both ways, and the deletion of all", () => {
    expect(curl("GET", "/health")).toMatchObject({ status: 200, body: { ready: true } });

    const room = curl("POST", "/v1/rooms", { room_id: "journey" });
    expect(room).toMatchObject({ status: 201, body: { room_id: "journey", state: "active", sandbox_count: 0 } });

    const request = { agent_id: "traveller", guest_cid: 9100, memory_mib: 512 };
    const sandbox = curl("POST", "/v1/rooms/journey/sandboxes/from-template", request);
    expect(sandbox).toMatchObject({ status: 201, body: { ...request, state: "running", drive_mount: "/mnt/drive" } });

    const exec = (argv: string[]) => curl("POST", "/v1/rooms/journey/sandboxes/traveller/exec", { argv });
    const uname = exec(["uname", "-a"]);
    expect(uname).toMatchObject({ status: 200, body: { exit_code: 0, stderr: "", timed_out: false } });
    expect(uname.body.stdout).toMatch(/^Linux traveller .*x86_64 GNU\/Linux\n$/);

    const written = curl("POST", "/v1/rooms/journey/drive/write", {
      path: "letters/in.txt",
      content: "from the host\n",
    });
    expect(written).toMatchObject({ status: 201, body: { guest_path: "/mnt/drive/letters/in.txt", size_bytes: 14 } });
    expect(exec(["cat", "/mnt/drive/letters/in.txt"]).body.stdout).toBe("from the host\n");

    expect(exec(["sh", "-c", "echo from the guest >/mnt/drive/letters/out.txt"]).body.exit_code).toBe(0);
    const read = curl("GET", "/v1/rooms/journey/drive/read?path=/letters/out.txt");
    expect(read).toMatchObject({ status: 200, body: { content: "from the guest\n", eof: true } });

    const destroyedSandbox = {
      agent_id: "traveller",
      sandbox_id: sandbox.body.sandbox_id,
      guest_cid: 9100,
      state: "destroyed",
    };
    expect(curl("DELETE", "/v1/rooms/journey/sandboxes/traveller")).toEqual({ status: 200, body: destroyedSandbox });
    const missing = curl("GET", "/v1/rooms/journey/sandboxes/traveller");
    expect(missing).toMatchObject({ status: 404, body: { code: "sandbox_not_found" } });

    const destroyed = { state: "destroyed", sandboxes_destroyed: [], drive: { state: "retained" } };
    expect(curl("DELETE", "/v1/rooms/journey")).toMatchObject({ status: 200, body: destroyed });
    expect(curl("GET", "/v1/rooms/journey")).toMatchObject({ status: 404, body: { code: "room_not_found" } });
    expect(guests.daemon.leftovers()).toEqual([]);
  });
});
