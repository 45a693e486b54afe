package io.headwater.capture;

import java.util.HashMap;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.api.java.UDF2;
import org.apache.spark.sql.types.DataTypes;

/** A function of a file's token and a row's index that gives the position in the row's id: for rewritten files. */
public final class RowPlaces implements UDF2<Long, Long, Long> {
  private static final long serialVersionUID = 1L;

  private final HashMap<Long, Places> files = new HashMap<>();

  /** The places of the file that has this token; rows of files that have none stand where they always did. */
  public void put(long token, Places places) {
    files.put(token, places);
  }

  /** Makes it callable by this name. */
  public void register(SparkSession session, String name) {
    session.udf().register(name, this, DataTypes.LongType);
  }

  @Override
  public Long call(Long token, Long index) {
    Places places = files.get(token);
    return places == null ? index : (Long) places.original(index);
  }
}
