/** Data analysis: a CSV file goes in, a program of the model's runs without network, a chart comes out as SVG. */
import { writeFile } from "node:fs/promises";
import { Sandbox } from "roomd-sdk";

const sales = "month,amount\nJan,120\nFeb,90\nMar,180\nApr,160\n";
// In a real run a model writes this; `pip install matplotlib` needs egress: ["pypi.org:443", "files.pythonhosted.org:443"].
const analysis = `
import csv
rows = [(row["month"], int(row["amount"])) for row in csv.DictReader(open("/root/sales.csv"))]
best = max(rows, key=lambda row: row[1])
print(f"best month: {best[0]} with {best[1]}")
bars = "".join(
    f'<rect x="{20 + 60 * at}" y="{200 - amount}" width="40" height="{amount}" fill="steelblue"/>'
    f'<text x="{40 + 60 * at}" y="216" text-anchor="middle">{month}</text>'
    for at, (month, amount) in enumerate(rows)
)
size = 60 * len(rows) + 20
open("/root/chart.svg", "w").write(
    f'<svg xmlns="http://www.w3.org/2000/svg" width="{size}" height="230">{bars}</svg>'
)
`;

await using sandbox = await Sandbox.create({ egress: [] });
await sandbox.files.write("/root/sales.csv", sales);
const { stdout, stderr, exitCode } = await sandbox.exec(["python3", "-c", analysis], { timeoutMs: 60_000 });
if (exitCode !== 0) throw new Error(stderr);
console.log(stdout.trim());
const path = process.argv[2] ?? "chart.svg";
await writeFile(path, await sandbox.files.read("/root/chart.svg"));
console.log(`chart: ${path}`);
