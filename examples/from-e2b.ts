/** A program written for E2B: only its import has changed, from "e2b" to "roomd-sdk/e2b". */
import { Sandbox } from "roomd-sdk/e2b";

const sandbox = await Sandbox.create({ timeoutMs: 300_000, metadata: { purpose: "migration" } });
await sandbox.files.write("/root/main.py", "print(6 * 7)\n");
const { stdout, exitCode } = await sandbox.commands.run("python3 /root/main.py");
console.log("exit", exitCode, stdout.trim());

const again = await Sandbox.connect(sandbox.sandboxId);
console.log((await again.files.list("/root")).map(({ name }) => name).filter((name) => name.endsWith(".py")));
await again.kill();
