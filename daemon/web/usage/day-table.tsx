/** A plot's numbers as a table, collapsed. */
import { dayText, numberText } from "./numbers.ts";

export function DayTable({
  of,
  days,
  columns,
}: {
  of: string;
  days: readonly string[];
  columns: readonly { name: string; values: readonly (number | null)[] }[];
}) {
  return (
    <details class="day-table">
      <summary>
        <span class="skip">{of}: </span>numbers
      </summary>
      <table>
        <thead>
          <tr>
            <th>Day, UTC</th>
            {columns.map(({ name }) => (
              <th key={name} class="num">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {days.map((day, n) => (
            <tr key={day}>
              <td data-label="Day">{dayText(day)}</td>
              {columns.map(({ name, values }) => {
                const value = values[n];
                return (
                  <td key={name} data-label={name} class="num">
                    {value === null || value === undefined ? "–" : numberText(value)}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}
