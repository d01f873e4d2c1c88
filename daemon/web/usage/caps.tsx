/** The plan's caps and their usage: in numbers, with bars. */
import type { UsageReport } from "../../../shared/api/usage.ts";
import { Bar } from "./bar.tsx";
import { capsOf } from "./caps.ts";

export function Caps({ report }: { report: UsageReport }) {
  return (
    <div class="scroll">
      <table class="bars">
        <thead>
          <tr>
            <th>Of the plan</th>
            <th class="num">Used</th>
            <th class="num">At most</th>
            <th>Share</th>
          </tr>
        </thead>
        <tbody>
          {capsOf(report).map(({ name, used, most, share, isOverSoft, soft }) => (
            <tr key={name}>
              <td data-label="What">{name}</td>
              <td data-label="Used" class="num">
                {used}
              </td>
              <td data-label="At most" class="num">
                {most}
              </td>
              <td data-label="Share">
                <Bar share={share} isHigh={isOverSoft} />{" "}
                {share > 0 && share < 0.01 ? "under 1 %" : `${Math.round(share * 100)} %`}
                {isOverSoft ? `: above the warning level of ${soft}` : ""}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
