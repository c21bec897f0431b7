package io.tributary.spark;

import java.util.List;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.objects.Invoke;
import org.apache.spark.sql.types.AbstractDataType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.ObjectType;
import scala.collection.JavaConverters;
import scala.collection.Seq;

/** Spark's expressions, made in Java. */
final class Expressions {
    private Expressions() {}

    /** The column of what the object's public method returns for each value of the argument, null where that is. */
    static Column call(Object object, String method, DataType result, Column argument) {
        Literal self = Literal.fromObject(object, new ObjectType(object.getClass()));
        Seq<Expression> arguments = seq(List.of(argument.expr()));
        Seq<AbstractDataType> unchecked = seq(List.of());
        return new Column(new Invoke(self, method, result, arguments, unchecked, true, true, true));
    }

    static <T> Seq<T> seq(List<T> items) {
        return JavaConverters.asScalaBuffer(items).toList();
    }
}
