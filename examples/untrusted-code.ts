/** Untrusted code: a time limit, no network, output as it arrives, and a sandbox of its own that is gone afterwards. */
import { Sandbox } from "roomd-sdk";

const code = `
import urllib.request
for number in range(3):
    print("working", number, flush=True)
try:
    urllib.request.urlopen("http://example.com", timeout=5)
except OSError as error:
    print("no network:", type(error).__name__, flush=True)
while True:
    pass
`;

await using sandbox = await Sandbox.create({ egress: [] });
await sandbox.files.write("/root/task.py", code);
const result = await sandbox.exec(["python3", "/root/task.py"], {
  timeoutMs: 10_000,
  onStdout: (text) => process.stdout.write(text),
});
console.log(result.timedOut ? "stopped after 10 s" : `exit ${result.exitCode}`);
