/** The plan's caps and their usage: in numbers, with bars. */
import type { UsageReport } from "../../../shared/api/usage.ts";
import { Table } from "../components/table.tsx";
import { Bar } from "./bar.tsx";
import { capsOf } from "./caps.ts";

export function Caps({ report }: { report: UsageReport }) {
  return (
    <Table
      class="bars"
      classes={{ Used: "num", "At most": "num" }}
      rows={capsOf(report).map(({ name, used, most, share, isOverSoft, soft }) => ({
        key: name,
        cells: {
          "Of the plan": name,
          Used: used,
          "At most": most,
          Share: (
            <>
              <Bar share={share} isHigh={isOverSoft} />{" "}
              {share > 0 && share < 0.01 ? "under 1 %" : `${Math.round(share * 100)} %`}
              {isOverSoft ? `: above the warning level of ${soft}` : ""}
            </>
          ),
        },
      }))}
    />
  );
}
