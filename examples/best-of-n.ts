/** Best of n: prepare a sandbox once, fork it with memory and disk, try another change in each copy, and keep one that passes the test. */
import { Roomd } from "roomd-sdk";

const candidates = { first: "s/ - 1/ + 1/", second: "s/ - 1//", third: "s/sum/max/" };

await using room = await new Roomd().rooms.create();
const base = await room.createSandbox("base");
await base.files.write("/root/total.py", "print(sum(int(word) - 1 for word in input().split()))\n");
await base.files.write("/root/test.sh", 'test "$(echo 2 3 5 | python3 /root/total.py)" = 10\n');
console.log("before:", (await base.exec("sh /root/test.sh")).exitCode === 0 ? "passes" : "fails");

const copies = await base.fork(Object.keys(candidates));
const results = await Promise.all(
  copies.map(async (copy) => {
    const change = candidates[copy.agentId as keyof typeof candidates];
    await copy.exec(["sed", "-i", change, "/root/total.py"]);
    return { copy, passes: (await copy.exec("sh /root/test.sh")).exitCode === 0 };
  }),
);
for (const { copy, passes } of results) console.log(`${copy.agentId}: ${passes ? "passes" : "fails"}`);

const best = results.find(({ passes }) => passes)?.copy;
await best?.exec("cp /root/total.py /mnt/drive/");
console.log("kept:", (await room.drive.readText("/total.py")).trim());
